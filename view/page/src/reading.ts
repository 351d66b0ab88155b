// The two texts, one above the other: what is pointed at tints the words that it attends to.
import {type Palette, place} from './color';
import {kind, type Panel, type Range, type Token, weight} from './data';
import {element, svgElement, tokenElement} from './dom';
import {follow, kNothing, type Pointing, type Selection} from './heatmap';

const kLong = 60; // words; more of them scroll
const kFaintestLink = 0.08; // of the range; below it a link is not drawn

interface Link {
  row: number;
  column: number;
  strength: number;
  path: SVGPathElement;
}

export class Reading {
  readonly root = element('div', 'reading');
  private readonly keys: HTMLElement[];
  private readonly queries: HTMLElement[];
  private readonly lines = svgElement('svg', {class: 'links', 'aria-hidden': 'true'});
  private links: Link[] = [];
  private range: Range = [0, 1];
  private colors!: Palette;

  constructor(
    private readonly panel: Panel,
    names: {row: string; column: string},
    pointing: Pointing,
  ) {
    const words = (tokens: Token[], selection: (i: number) => Selection) =>
      tokens.map((token, i) => {
        const word = tokenElement(token, 'word');
        follow(word, selection(i), pointing);
        return word;
      });
    this.keys = words(panel.keys, (i) => ({row: null, column: i}));
    this.queries = words(panel.queries, (i) => ({row: i, column: null}));
    this.root.classList.toggle('long', Math.max(panel.keys.length, panel.queries.length) > kLong);
    this.root.append(
      element('span', 'axis', names.column),
      element('div', 'words keys', ...this.keys),
      element('span', 'axis', names.row),
      element('div', 'words queries', ...this.queries),
      this.lines,
    );
  }

  draw(range: Range, colors: Palette): void {
    this.range = range;
    this.colors = colors;
    this.drawLinks();
    this.show(kNothing);
  }

  // Links need both texts on one line each; otherwise they would cross the words.
  private drawLinks(): void {
    this.links = [];
    this.lines.replaceChildren();
    const oneLine = (words: HTMLElement[]) => words.every((word) => word.offsetTop === words[0].offsetTop);
    const linked = oneLine(this.keys) && oneLine(this.queries);
    this.root.classList.toggle('linked', linked);
    if (!linked) return;
    const frame = this.root.getBoundingClientRect();
    const boxes = (words: HTMLElement[]) => words.map((word) => word.getBoundingClientRect());
    const above = boxes(this.keys);
    const below = boxes(this.queries);
    const color = this.colors.ramp(0.55);
    below.forEach((to, row) =>
      above.forEach((from, column) => {
        if (kind(this.panel, row, column) !== 'weight') return;
        const strength = place(this.range, weight(this.panel, row, column));
        if (strength < kFaintestLink) return;
        const [x1, y1] = [(from.left + from.right) / 2 - frame.left, from.bottom - frame.top];
        const [x2, y2] = [(to.left + to.right) / 2 - frame.left, to.top - frame.top];
        const middle = (y1 + y2) / 2;
        const path = svgElement('path', {
          d: `M${x1},${y1}C${x1},${middle} ${x2},${middle} ${x2},${y2}`,
          stroke: color,
          'stroke-width': (0.75 + 3 * strength).toFixed(2),
        });
        this.links.push({row, column, strength, path});
        this.lines.append(path);
      }),
    );
  }

  show({row, column}: Selection): void {
    const nothing = row === null && column === null;
    this.tint(this.keys, (i) => (row === null ? null : [row, i]));
    this.tint(this.queries, (i) => (row === null && column !== null ? [i, column] : null));
    this.keys.forEach((word, i) => word.classList.toggle('on', i === column));
    this.queries.forEach((word, i) => word.classList.toggle('on', i === row));
    for (const link of this.links) {
      const chosen = row !== null ? link.row === row : link.column === column;
      link.path.style.opacity = String(nothing ? 0.15 + 0.6 * link.strength : chosen ? 0.3 + 0.7 * link.strength : 0.06);
      link.path.style.stroke = !nothing && chosen ? this.colors.accent : '';
    }
  }

  private tint(words: HTMLElement[], cell: (i: number) => [number, number] | null): void {
    words.forEach((word, i) => {
      const at = cell(i);
      const lit = at !== null && kind(this.panel, at[0], at[1]) === 'weight';
      const strength = lit ? place(this.range, weight(this.panel, at[0], at[1])) : 0;
      word.style.backgroundColor = lit && strength > 0.02 ? this.colors.ramp(strength) : '';
      word.style.color = lit && strength > 0.02 ? this.colors.ink(strength) : '';
    });
  }
}
