// Programs to start from: of this folder, of the lessons, and of kernels/. A block of a lesson that is missing fails the build.
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const read = (path) => readFileSync(join(root, path), 'utf8')

/** Lessons with the files of their blocks that make up a program, `#2` the second block of a file; further fields preset the page. */
const LESSONS = [
  ['01-spmv', ['spmv.spt'], {}],
  ['02-loops', ['spmv.spt'], { view: 'loops' }],
  ['03-split-bind-cache', ['spmm.spt'], { view: 'loops' }],
  ['04-illegal-step', ['spmv.spt', 'edges.spt#1'], { view: 'loops' }],
  ['05-formats', ['spmv.spt', 'pairs.spt#2', 'paired.spt'], { view: 'picture', matrix: 'blocks:256' }],
  ['06-hyb', ['spmv.spt', 'buckets.spt'], { view: 'picture', matrix: 'data/cora.mtx' }],
  ['07-fusion', ['attention.spt', 'fused.spt'], { view: 'loops' }],
  ['08-dynamic-sparsity', ['layer.spt', 'panels.spt'], {}],
]

const BLOCK = /^```spt file=(\S+)\n(.*?)^```$/gms

function lesson([name, files, preset]) {
  const page = read(`docs/lessons/${name}.md`)
  const [, title] = /^# (.*)$/m.exec(page)
  const blocks = [...page.matchAll(BLOCK)]
  const texts = files.map((address) => {
    const [file, number = '1'] = address.split('#')
    const text = blocks.filter(([, name]) => name === file)[number - 1]?.[2]
    if (text === undefined) throw new Error(`docs/lessons/${name}.md has no block file=${address}`)
    return text
  })
  // One file: the imports of the lesson's other files go, those of the package come first.
  const lines = texts.flatMap((t) => t.split('\n')).filter((l) => !/^import .*"\.\//.test(l))
  const imports = [...new Set(lines.filter((l) => l.startsWith('import ')))]
  const body = lines
    .filter((l) => !l.startsWith('import '))
    .join('\n')
    .trim()
  const text = `${imports.length > 0 ? `${imports.join('\n')}\n\n` : ''}${body}\n`
  return { group: 'Lessons', id: name, title, text, preset }
}

/** Kernels for devices that a page has: those with CUDA instructions are left out. The page fetches a text when it is selected. */
const kernels = () =>
  readdirSync(join(root, 'kernels'))
    .filter((f) => f.endsWith('.spt') && !/^import .*"\.\/instructions\//m.test(read(`kernels/${f}`)))
    .map((f) => ({ group: 'kernels/', id: `kernels/${f}`, title: f, preset: {} }))

/** The program that the page shows first. */
export const start = () => read('playground/examples/spmm.spt')

export const examples = () => [
  { group: 'Start', id: 'spmm', title: 'SpMM', text: start(), preset: {} },
  ...LESSONS.map(lesson),
  ...kernels(),
]
