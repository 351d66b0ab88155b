// What is pointed at, in words: a pair and its weight, or the strongest of a row or column.
import {type Palette, place} from './color';
import {format, kind, type Panel, type Range, shownText, weight} from './data';
import {element, tokenElement} from './dom';
import type {Selection} from './heatmap';

const kTops = 5;

interface Names {
  row: string;
  column: string;
}

export class Tooltip {
  readonly root = element('div', 'tooltip');
  readonly spoken = element('div', 'spoken');

  constructor() {
    this.root.hidden = true;
    this.root.setAttribute('role', 'tooltip');
    this.spoken.setAttribute('aria-live', 'polite');
  }

  hide(): void {
    this.root.hidden = true;
  }

  show(panel: Panel, names: Names, selection: Selection, box: DOMRect, range: Range, colors: Palette): void {
    const {row, column} = selection;
    if (row !== null && column !== null) this.root.replaceChildren(...pair(panel, names, row, column));
    else this.root.replaceChildren(...tops(panel, names, selection, range, colors));
    this.root.hidden = false;
    this.position(box);
    if (row !== null && column !== null) {
      this.spoken.textContent =
        `${names.row} ${shownText(panel.queries[row])}, ${row + 1} of ${panel.queries.length}; ` +
        `${names.column} ${shownText(panel.keys[column])}, ${column + 1} of ${panel.keys.length}: ` +
        words(panel, row, column);
    }
  }

  private position(box: DOMRect): void {
    const {width, height} = this.root.getBoundingClientRect();
    const margin = 12;
    // Beside the box, at whichever end has the room, and always on the screen.
    const beside = (start: number, end: number, size: number, screen: number) => {
      const after = end + margin;
      const at = after + size <= screen - 4 ? after : start - margin - size;
      return Math.max(4, Math.min(screen - 4 - size, at));
    };
    const x = beside(box.left, box.right, width, innerWidth);
    const y = beside(box.top, box.bottom, height, innerHeight);
    this.root.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  }
}

function words(panel: Panel, row: number, column: number): string {
  return kind(panel, row, column) === 'masked' ? 'masked' : format(weight(panel, row, column));
}

function pair(panel: Panel, names: Names, row: number, column: number): HTMLElement[] {
  return [
    element('div', 'weight', words(panel, row, column)),
    element(
      'div',
      'pair',
      element('span', 'what', names.row),
      tokenElement(panel.queries[row]),
      element('span', 'where', `${row + 1} of ${panel.queries.length}`),
      element('span', 'what', names.column),
      tokenElement(panel.keys[column]),
      element('span', 'where', `${column + 1} of ${panel.keys.length}`),
    ),
  ];
}

function tops(panel: Panel, names: Names, {row, column}: Selection, range: Range, colors: Palette): HTMLElement[] {
  const others = row !== null ? panel.keys : panel.queries;
  const cell = (i: number): [number, number] => (row !== null ? [row, i] : [i, column!]);
  const order = others
    .map((_, i) => i)
    .filter((i) => kind(panel, ...cell(i)) === 'weight')
    .sort((a, b) => weight(panel, ...cell(b)) - weight(panel, ...cell(a)))
    .slice(0, kTops);
  const list = element('div', 'tops');
  for (const i of order) {
    const value = weight(panel, ...cell(i));
    const fill = element('i');
    fill.style.width = `${100 * place(range, value)}%`;
    fill.style.background = colors.ramp(0.55);
    list.append(tokenElement(others[i]), element('span', 'meter', fill), element('span', 'number', Math.abs(value) >= 0.001 ? value.toFixed(3) : format(Number(value.toPrecision(1)))));
  }
  const token = row !== null ? panel.queries[row] : panel.keys[column!];
  const verb = row !== null ? 'looks at' : 'is looked at by';
  const heading = element('div', '', element('span', 'what', row !== null ? names.row : names.column), ' ');
  heading.append(tokenElement(token), ' ', element('span', 'what', order.length ? verb : 'has no weight'));
  return [heading, list];
}
