// One matrix: labels on both axes, cells on a canvas, the chosen row and column lit.
import {scaleBand, type ScaleBand} from 'd3-scale';
import {type Palette, place} from './color';
import {kind, type Panel, type Range, type Token, weight} from './data';
import {element, svgElement} from './dom';

// What is pointed at: a cell, a whole row, a whole column, or nothing.
export interface Selection {
  row: number | null;
  column: number | null;
}

// Told where the pointer is: passing over something, or pressed on it.
export interface Pointing {
  hover(selection: Selection): void;
  pin(selection: Selection): void;
}

export function follow(target: Element, selection: Selection, pointing: Pointing): void {
  target.addEventListener('pointerenter', () => pointing.hover(selection));
  target.addEventListener('pointerleave', () => pointing.hover(kNothing));
  target.addEventListener('click', () => pointing.pin(selection));
}

export const kNothing: Selection = {row: null, column: null};

const kFont = "12px 'Inter Variable', system-ui, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
const kLongestLabel = 170; // pixels; longer ones end in "…"
const kLabelPitch = 12; // pixels between the lines of labels, at least
const kSlantPitch = 17; // the same along the axis, for labels that lean by 45 degrees
const kUpright = 10; // pixels: labels this short are not turned
const kAxisName = 20; // pixels for the name of an axis
const kLargestCanvas = 16384; // pixels a side, the least that browsers allow

const measure = document.createElement('canvas').getContext('2d')!;

interface Label {
  token: Token;
  width: number;
}

function textWidth(text: string): number {
  measure.font = kFont;
  return measure.measureText(text).width;
}

// The token's runs, cut to kLongestLabel.
function label(token: Token): Label {
  const width = token.runs.reduce((sum, run) => sum + textWidth(run.text), 0);
  if (width <= kLongestLabel) return {token, width};
  const runs = [];
  let left = kLongestLabel - textWidth('…');
  for (const run of token.runs) {
    let text = '';
    for (const letter of run.text) {
      left -= textWidth(letter);
      if (left < 0) break;
      text += letter;
    }
    if (text) runs.push({text, symbol: run.symbol});
    if (left < 0) break;
  }
  return {token: {verbatim: token.verbatim, runs: [...runs, {text: '…', symbol: true}]}, width: kLongestLabel};
}

function labelText(shown: Token, attributes: Record<string, string | number>): SVGTextElement {
  const text = svgElement('text', {class: 'label', ...attributes});
  for (const run of shown.runs) {
    const span = svgElement('tspan', run.symbol ? {class: 'symbol'} : {});
    span.textContent = run.text;
    text.append(span);
  }
  return text;
}

export interface Space {
  width: number; // pixels to fill with the matrix and its labels
  height: number;
  largest: number; // pixels a cell, at most
}

export class Heatmap {
  readonly root = element('div', 'heatmap');
  readonly cells = element('div', 'cells');
  private readonly canvas = element('canvas');
  private readonly overlay = svgElement('svg');
  private readonly rowLabels: Label[];
  private readonly columnLabels: Label[];
  private readonly rowTexts: (SVGTextElement | null)[] = [];
  private readonly columnTexts: (SVGTextElement | null)[] = [];
  private cell = 0;
  private turn: 0 | 45 | 90 = 0; // degrees that the labels of the columns are turned by
  private x: ScaleBand<number> = scaleBand<number>();
  private y: ScaleBand<number> = scaleBand<number>();

  constructor(
    private readonly panel: Panel,
    private readonly names: {row: string; column: string},
    private readonly pointing: Pointing,
  ) {
    this.rowLabels = panel.queries.map(label);
    this.columnLabels = panel.keys.map(label);
    this.cells.append(this.canvas, this.overlay);
    this.cells.addEventListener('pointermove', (event) => {
      if (event.pointerType !== 'touch') pointing.hover(this.at(event));
    });
    this.cells.addEventListener('pointerleave', (event) => {
      if (event.pointerType !== 'touch') pointing.hover(kNothing);
    });
    this.cells.addEventListener('click', (event) => pointing.pin(this.at(event)));
  }

  private at(event: MouseEvent): Selection {
    const box = this.cells.getBoundingClientRect();
    const clamp = (value: number, count: number) => Math.max(0, Math.min(count - 1, Math.floor(value / this.cell)));
    return {
      row: clamp(event.clientY - box.top, this.panel.queries.length),
      column: clamp(event.clientX - box.left, this.panel.keys.length),
    };
  }

  // Where the selection is on the screen; of a column, its upper end.
  box({row, column}: Selection): DOMRect {
    const box = this.cells.getBoundingClientRect();
    return new DOMRect(
      box.left + (column ?? 0) * this.cell,
      box.top + (row ?? 0) * this.cell,
      column === null ? box.width : this.cell,
      row === null ? 0 : this.cell,
    );
  }

  layout(space: Space): void {
    const rows = this.panel.queries.length;
    const columns = this.panel.keys.length;
    const widest = (labels: Label[]) => labels.reduce((most, one) => Math.max(most, one.width), 0);
    const rowWidth = Math.ceil(kAxisName + widest(this.rowLabels) + 12);
    const columnWidest = widest(this.columnLabels);
    const smallest = Math.max(1, Math.min(kLabelPitch, Math.floor(kLargestCanvas / 2 / Math.max(rows, columns))));
    // With room for the last label, should it lean out to the right.
    const fit = Math.min(
      (space.width - rowWidth - columnWidest * Math.SQRT1_2) / columns,
      (space.height - kAxisName - columnWidest) / rows,
    );
    this.cell = Math.max(smallest, Math.min(space.largest, Math.floor(fit)));
    this.turn = columnWidest + 8 <= this.cell ? 0 : this.cell >= kSlantPitch ? 45 : 90;
    const columnHeight = kAxisName + Math.ceil({0: 24, 45: columnWidest * Math.SQRT1_2 + 14, 90: columnWidest + 12}[this.turn]);
    const band = (count: number) =>
      scaleBand<number>().domain(Array.from({length: count}, (_, i) => i)).range([0, count * this.cell]);
    this.x = band(columns);
    this.y = band(rows);

    const width = columns * this.cell;
    const height = rows * this.cell;
    const overhang = this.overhang(width);
    this.root.style.gridTemplateColumns = `${rowWidth}px ${width}px ${overhang}px`;
    this.root.style.gridTemplateRows = `${columnHeight}px ${height}px`;
    this.cells.style.width = `${width}px`;
    this.cells.style.height = `${height}px`;
    this.root.replaceChildren(
      element('div', 'corner'),
      this.columnAxis(width, columnHeight, overhang),
      this.rowAxis(rowWidth, height),
      this.cells,
    );
  }

  // How far the labels of the columns lean out to the right of the matrix.
  private overhang(width: number): number {
    if (this.turn !== 45) return 4;
    const ends = this.columnLabels.map((one, i) => (i + 0.5) * this.cell + one.width * Math.SQRT1_2 + 10 - width);
    return Math.ceil(Math.max(4, ...ends));
  }

  // Every how many-th label is written: all, unless they would run into each other.
  private stride(): number {
    return Math.ceil(kLabelPitch / this.cell);
  }

  private columnAxis(width: number, height: number, overhang: number): HTMLElement {
    const svg = svgElement('svg', {width: width + overhang, height});
    const name = svgElement('text', {class: 'name', x: width / 2, y: 11, 'text-anchor': 'middle'});
    name.textContent = this.names.column;
    svg.append(name);
    this.columnTexts.length = 0;
    this.columnLabels.forEach((one, i) => {
      this.columnTexts.push(null);
      if (i % this.stride()) return;
      const x = this.x(i)! + this.cell / 2;
      const text = this.turn && one.width > kUpright
        ? labelText(one.token, {
            transform: `translate(${x + (this.turn === 90 ? 0 : 4)}, ${height - 6}) rotate(${-this.turn})`,
            dy: this.turn === 90 ? '0.35em' : 0,
          })
        : labelText(one.token, {x, y: height - 9, 'text-anchor': 'middle'});
      follow(text, {row: null, column: i}, this.pointing);
      this.columnTexts[i] = text;
      svg.append(text);
    });
    const axis = element('div', 'columns', svg);
    axis.style.width = `${width + overhang}px`;
    return axis;
  }

  private rowAxis(width: number, height: number): HTMLElement {
    const svg = svgElement('svg', {width, height});
    const name = svgElement('text', {
      class: 'name',
      'text-anchor': 'middle',
      transform: `translate(11, ${height / 2}) rotate(-90)`,
    });
    name.textContent = this.names.row;
    // A name longer than its matrix would run into the page.
    if (textWidth(this.names.row) <= Math.max(height, 60)) svg.append(name);
    this.rowTexts.length = 0;
    this.rowLabels.forEach((one, i) => {
      this.rowTexts.push(null);
      if (i % this.stride()) return;
      const text = labelText(one.token, {
        x: width - 8,
        y: this.y(i)! + this.cell / 2,
        dy: '0.35em',
        'text-anchor': 'end',
      });
      follow(text, {row: i, column: null}, this.pointing);
      this.rowTexts[i] = text;
      svg.append(text);
    });
    return element('div', 'rows', svg);
  }

  draw(range: Range, colors: Palette): void {
    const width = this.panel.keys.length * this.cell;
    const height = this.panel.queries.length * this.cell;
    const scale = Math.min(window.devicePixelRatio || 1, kLargestCanvas / Math.max(width, height, 1));
    this.canvas.width = Math.ceil(width * scale);
    this.canvas.height = Math.ceil(height * scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.overlay.setAttribute('width', String(width));
    this.overlay.setAttribute('height', String(height));
    const context = this.canvas.getContext('2d')!;
    context.scale(scale, scale);
    this.panel.queries.forEach((_, row) =>
      this.panel.keys.forEach((_, column) => this.drawCell(context, row, column, range, colors)),
    );
  }

  private drawCell(context: CanvasRenderingContext2D, row: number, column: number, range: Range, colors: Palette) {
    const gap = this.cell >= 10 ? 1 : 0;
    const x = this.x(column)! + gap / 2;
    const y = this.y(row)! + gap / 2;
    const size = this.cell - gap;
    const what = kind(this.panel, row, column);
    if (what === 'masked') return drawMasked(context, x, y, size, colors.masked);
    if (what === 'notFinite') return drawHatch(context, x, y, size, colors.alarm);
    const value = weight(this.panel, row, column);
    const at = place(range, value);
    context.fillStyle = colors.ramp(at);
    if (size >= 14 && context.roundRect) {
      context.beginPath();
      context.roundRect(x, y, size, size, Math.min(4, size / 9));
      context.fill();
    } else {
      context.fillRect(x, y, size, size);
    }
    if (size < 36 || at < 0.06) return;
    context.fillStyle = colors.ink(at);
    context.font = kFont.replace('12px', '11px');
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    const digits = Math.abs(value) < 100 ? value.toFixed(2).replace(/^(-?)0\./, '$1.') : value.toPrecision(2);
    context.fillText(digits, x + size / 2, y + size / 2 + 0.5);
  }

  show(selection: Selection): void {
    const {row, column} = selection;
    this.root.classList.toggle('lit', row !== null || column !== null);
    const light = (texts: (SVGTextElement | null)[], chosen: number | null) =>
      texts.forEach((text, i) => {
        text?.classList.toggle('on', i === chosen);
        text?.classList.toggle('free', chosen === null);
      });
    light(this.rowTexts, row);
    light(this.columnTexts, column);
    this.overlay.replaceChildren();
    if (row === null && column === null) return;
    const width = this.panel.keys.length * this.cell;
    const height = this.panel.queries.length * this.cell;
    const rectangle = (name: string, x: number, y: number, w: number, h: number) =>
      this.overlay.append(svgElement('rect', {class: name, x, y, width: w, height: h, rx: 3}));
    this.overlay.append(svgElement('path', {class: 'shade', d: this.outside(selection, width, height)}));
    if (row !== null) rectangle('band row', 0, row * this.cell, width, this.cell);
    if (column !== null) rectangle('band column', column * this.cell, 0, this.cell, height);
    if (row !== null && column !== null) rectangle('focus', column * this.cell, row * this.cell, this.cell, this.cell);
  }

  // Everything that is in neither the row nor the column.
  private outside({row, column}: Selection, width: number, height: number): string {
    const sides = (index: number | null, end: number): [number, number][] =>
      index === null ? [[0, end]] : [[0, index * this.cell], [(index + 1) * this.cell, end]];
    let path = '';
    for (const [left, right] of sides(column, width)) {
      for (const [top, bottom] of sides(row, height)) path += `M${left},${top}H${right}V${bottom}H${left}Z`;
    }
    return path;
  }
}

// A masked pair does not exist: no cell, a dot where it would be.
export function drawMasked(context: CanvasRenderingContext2D, x: number, y: number, size: number, color: string): void {
  context.fillStyle = color;
  context.beginPath();
  context.arc(x + size / 2, y + size / 2, Math.max(0.5, Math.min(2, size / 9)), 0, 2 * Math.PI);
  context.fill();
}

export function drawHatch(context: CanvasRenderingContext2D, x: number, y: number, size: number, color: string): void {
  context.save();
  context.beginPath();
  context.rect(x, y, size, size);
  context.clip();
  context.strokeStyle = color;
  context.lineWidth = Math.max(1, Math.min(2, size / 10));
  const step = Math.max(3, Math.min(7, size / 4));
  context.beginPath();
  for (let offset = -size; offset < size; offset += step) {
    context.moveTo(x + offset, y + size);
    context.lineTo(x + offset + size, y);
  }
  context.stroke();
  context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
  context.restore();
}
