// The document that the page was written with: see DocumentJson in view/page.cc.

export interface Run {
  text: string;
  symbol: boolean; // stands for what cannot be seen
}

export interface Token {
  verbatim: string;
  runs: Run[];
}

export interface Panel {
  title: string;
  queries: Token[]; // rows
  keys: Token[]; // columns
  weights: Float32Array; // [rows, columns]
  masked: Uint8Array | null; // one bit a cell
}

export type Range = [number, number];

export interface Document {
  title: string;
  queryAxis: string;
  keyAxis: string;
  columns: number; // panels side by side; 0: as many as there is room for
  range: Range; // shared by all panels
  ramps: {light: string[]; dark: string[]};
  panels: Panel[];
}

export type Kind = 'weight' | 'masked' | 'notFinite';

type RawToken = string | {verbatim: string; runs: [string, number][]};

interface RawPanel {
  title: string;
  queries: RawToken[];
  keys: RawToken[];
  weights: string;
  masked?: string;
}

function token(raw: RawToken): Token {
  if (typeof raw === 'string') return {verbatim: raw, runs: [{text: raw, symbol: false}]};
  return {verbatim: raw.verbatim, runs: raw.runs.map(([text, symbol]) => ({text, symbol: symbol !== 0}))};
}

function bytes(base64: string): Uint8Array {
  const text = atob(base64);
  const made = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) made[i] = text.charCodeAt(i);
  return made;
}

// float32, little endian
function weights(base64: string): Float32Array {
  const view = new DataView(bytes(base64).buffer);
  const made = new Float32Array(view.byteLength / 4);
  for (let i = 0; i < made.length; i++) made[i] = view.getFloat32(4 * i, true);
  return made;
}

export function readDocument(): Document {
  const raw = JSON.parse(document.getElementById('data')!.textContent!);
  const panels = raw.panels.map((panel: RawPanel): Panel => ({
    title: panel.title,
    queries: panel.queries.map(token),
    keys: panel.keys.map(token),
    weights: weights(panel.weights),
    masked: panel.masked === undefined ? null : bytes(panel.masked),
  }));
  return {...raw, panels};
}

export function kind(panel: Panel, row: number, column: number): Kind {
  const index = row * panel.keys.length + column;
  if (panel.masked && (panel.masked[index >> 3] >> (index & 7)) & 1) return 'masked';
  return Number.isFinite(panel.weights[index]) ? 'weight' : 'notFinite';
}

export function weight(panel: Panel, row: number, column: number): number {
  return panel.weights[row * panel.keys.length + column];
}

// The range of one panel alone, by the rule of SharedRange in view/color.cc.
export function panelRange(panel: Panel): Range {
  let low = 0;
  let high = -Infinity;
  panel.queries.forEach((_, row) =>
    panel.keys.forEach((_, column) => {
      if (kind(panel, row, column) !== 'weight') return;
      low = Math.min(low, weight(panel, row, column));
      high = Math.max(high, weight(panel, row, column));
    }),
  );
  return high > low ? [low, high] : [low, low + Math.max(1, Math.abs(low))];
}

export function shownText(token: Token): string {
  return token.runs.map((run) => run.text).join('');
}

// Four significant digits, as short as they can be written.
export function format(value: number): string {
  if (Number.isNaN(value)) return 'not a number';
  if (!Number.isFinite(value)) return value > 0 ? 'infinity' : '−infinity';
  const text = value !== 0 && Math.abs(value) < 1e-4 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
  return text.replace(/-/g, '−');
}
