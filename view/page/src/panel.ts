// A card: title, the two texts, the heatmap, and a legend of what is not a weight.
import {colorBar, type Palette} from './color';
import {type Document, kind, type Panel, panelRange, type Range} from './data';
import {element} from './dom';
import {drawHatch, drawMasked, Heatmap, kNothing, type Pointing, type Selection} from './heatmap';
import {Reading} from './reading';
import type {Tooltip} from './tooltip';

export interface Look {
  colors: Palette;
  shared: boolean; // one colour range for all panels
  wide: boolean; // this panel alone on the page
  reading: boolean; // the two texts above the heatmap
  width: number; // pixels for the card's content
}

export class PanelView implements Pointing {
  readonly root = element('section', 'panel');
  private readonly names: {row: string; column: string};
  private readonly heatmap: Heatmap;
  private reading: Reading | null = null;
  private look!: Look;
  private range: Range = [0, 1];
  private selection = kNothing;
  private pinned = false;

  constructor(
    private readonly source: Document,
    private readonly panel: Panel,
    private readonly tooltip: Tooltip,
  ) {
    this.names = {row: source.queryAxis, column: source.keyAxis};
    this.heatmap = new Heatmap(panel, this.names, this);
    const root = this.heatmap.root;
    root.tabIndex = 0;
    root.setAttribute('role', 'application');
    root.setAttribute(
      'aria-label',
      `${panel.title || source.title || 'Attention'}: weights of ${panel.queries.length} by ${panel.keys.length}; ` +
        'arrow keys move from cell to cell',
    );
    root.addEventListener('keydown', (event) => this.key(event));
    root.addEventListener('blur', () => this.release());
  }

  // Builds the card for a look; may be called again.
  layout(look: Look): void {
    this.look = look;
    this.range = look.shared ? this.source.range : panelRange(this.panel);
    this.selection = kNothing;
    this.pinned = false;
    this.root.classList.toggle('wide', look.wide);
    this.root.replaceChildren();
    if (this.panel.title) this.root.append(element('h2', '', this.panel.title));
    const {queries, keys} = this.panel;
    if (queries.length === 0 || keys.length === 0) {
      this.root.append(element('p', 'empty', `No weights: ${queries.length} by ${keys.length}.`));
      return;
    }
    this.reading = look.reading ? new Reading(this.panel, this.names, this) : null;
    if (this.reading) this.root.append(this.reading.root);
    const height = look.wide ? Math.max(420, innerHeight * 0.8) : Infinity;
    this.heatmap.layout({width: look.width, height, largest: look.wide ? 46 : 30});
    this.root.append(element('div', 'scroller', this.heatmap.root));
    const legend = this.legend();
    if (legend) this.root.append(legend);
    if (!look.shared) this.root.append(colorBar(this.range, look.colors, 'weight, range of this panel alone'));
  }

  // Once the card is on the page and its words have their places.
  draw(): void {
    if (!this.root.querySelector('.heatmap')) return;
    this.heatmap.draw(this.range, this.look.colors);
    this.reading?.draw(this.range, this.look.colors);
    this.show(kNothing);
  }

  release(): void {
    this.pinned = false;
    this.show(kNothing);
  }

  hover(selection: Selection): void {
    if (!this.pinned) this.show(selection);
  }

  // A click or tap keeps what it was on lit until the next one.
  pin(selection: Selection): void {
    const same = this.pinned && selection.row === this.selection.row && selection.column === this.selection.column;
    this.pinned = !same;
    this.show(selection);
  }

  private key(event: KeyboardEvent): void {
    const rows = this.panel.queries.length;
    const columns = this.panel.keys.length;
    const row = this.selection.row ?? -1;
    const column = this.selection.column ?? -1;
    const moves: Record<string, [number, number]> = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      Home: [row, 0],
      End: [row, columns - 1],
    };
    if (event.key === 'Escape') return this.release();
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const clamp = (value: number, count: number) => Math.max(0, Math.min(count - 1, value));
    this.pinned = true;
    this.show({row: clamp(move[0], rows), column: clamp(move[1], columns)});
  }

  private show(selection: Selection): void {
    this.selection = selection;
    this.heatmap.show(selection);
    this.reading?.show(selection);
    if (selection.row === null && selection.column === null) return this.tooltip.hide();
    const box = this.heatmap.box(selection);
    this.tooltip.show(this.panel, this.names, selection, box, this.range, this.look.colors);
  }

  private legend(): HTMLElement | null {
    const kinds = new Set<string>();
    this.panel.queries.forEach((_, row) => this.panel.keys.forEach((_, column) => kinds.add(kind(this.panel, row, column))));
    const entries = [];
    if (kinds.has('masked')) entries.push(swatch(drawMasked, this.look.colors.masked, 'masked'));
    if (kinds.has('notFinite')) entries.push(swatch(drawHatch, this.look.colors.alarm, 'not a number'));
    return entries.length ? element('div', 'legend', ...entries) : null;
  }
}

function swatch(draw: typeof drawHatch, color: string, text: string): HTMLElement {
  const canvas = element('canvas');
  canvas.width = canvas.height = 32;
  canvas.style.width = canvas.style.height = '16px';
  const context = canvas.getContext('2d')!;
  context.scale(2, 2);
  draw(context, 0, 0, 16, color);
  return element('span', '', canvas, text);
}
