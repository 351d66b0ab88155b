// Builds the page: node build.mjs OUTPUT. Runs where node_modules is, with src/ beside it.
import {createHash} from 'node:crypto';
import {readFile, writeFile} from 'node:fs/promises';
import {build} from 'esbuild';

const common = {
  bundle: true,
  minify: true,
  write: false,
  preserveSymlinks: true,
  charset: 'utf8',
  legalComments: 'none',
  target: ['es2020', 'chrome90', 'firefox90', 'safari15'],
  loader: {'.woff2': 'dataurl'},
  logLevel: 'warning',
};

async function bundle(entry) {
  const result = await build({...common, entryPoints: [entry]});
  return result.outputFiles[0].text.trim();
}

const script = await bundle('src/main.ts');
const style = await bundle('src/style.css');
for (const [name, text] of [['script', script], ['style', style]]) {
  if (new RegExp(`<!--|</?${name}`, 'i').test(text)) throw new Error(`the ${name} contains markup that would end it`);
}
const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

// The page may run its own script and style, and load nothing.
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; font-src data:; img-src data:`;
const parts = {POLICY: policy, STYLE: style, SCRIPT: script};
const template = await readFile('src/page.html', 'utf8');
await writeFile(process.argv[2], template.replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]));
