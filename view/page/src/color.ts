// From a weight to a colour, and the bar that says how.
import {axisBottom} from 'd3-axis';
import {scaleLinear} from 'd3-scale';
import {select} from 'd3-selection';
import {type Document, format, type Range} from './data';
import {element, svgElement} from './dom';

export interface Palette {
  ramp: (place: number) => string; // place in 0..1
  ink: (place: number) => string; // text on ramp(place)
  masked: string;
  accent: string;
  alarm: string;
}

const kShades = 1001; // enough that no step between two is seen

export function palette(source: Document): Palette {
  const dark = document.documentElement.dataset.theme === 'dark';
  const stops = dark ? source.ramps.dark : source.ramps.light;
  const scale = scaleLinear<string>()
    .domain(stops.map((_, i) => i / (stops.length - 1)))
    .range(stops);
  const table = Array.from({length: kShades}, (_, i) => scale(i / (kShades - 1)));
  const style = getComputedStyle(document.documentElement);
  const variable = (name: string) => style.getPropertyValue(name).trim();
  return {
    ramp: (place) => table[Math.round(place * (kShades - 1))],
    ink: (place) => (dark ? (place > 0.55 ? '#10131f' : '#eef1f6') : place > 0.42 ? '#ffffff' : '#1c2030'),
    masked: variable('--masked'),
    accent: variable('--accent'),
    alarm: variable('--alarm'),
  };
}

export function place(range: Range, value: number): number {
  return Math.min(1, Math.max(0, (value - range[0]) / (range[1] - range[0])));
}

const kBarWidth = 200;

// The bar for a range, with `caption` saying whose range it is.
export function colorBar(range: Range, colors: Palette, caption: string): HTMLElement {
  const bar = element('figure', 'bar', element('figcaption', '', caption));
  const canvas = element('canvas');
  canvas.width = 256;
  canvas.height = 1;
  const context = canvas.getContext('2d')!;
  for (let x = 0; x < 256; x++) {
    context.fillStyle = colors.ramp(x / 255);
    context.fillRect(x, 0, 1, 1);
  }
  const scale = scaleLinear().domain(range).range([0, kBarWidth]);
  const svg = svgElement('svg', {width: kBarWidth + 44, height: 20, 'aria-hidden': 'true'});
  const group = svgElement('g', {transform: 'translate(22, 0)'});
  // The two ends, and the round numbers that do not touch them.
  const inner = scale.ticks(4).filter((tick) => scale(tick) > 34 && scale(tick) < kBarWidth - 40);
  select<SVGGElement, unknown>(group).call(
    axisBottom(scale)
      .tickValues([range[0], ...inner, range[1]])
      .tickFormat((value) => format(Number(value)))
      .tickSize(4)
      .tickPadding(3),
  );
  svg.append(group);
  bar.append(canvas, svg);
  return bar;
}
