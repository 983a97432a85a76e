// Runs the cells of notebooks that are not measured, in Node: no Deno and no Python, so that every gate can.
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { transformSync } from 'esbuild'
import { codeCells, isMeasured, textOf } from './document.mjs'

const root = resolve(import.meta.dirname, '../..')
/** Seconds that a notebook may take. */
const LIMIT = 300

/** What cells hand to whoever shows them: the last value of each, and what `display` is given. */
const PRELUDE = `import { writeFileSync as __write } from 'node:fs'
const __outputs = []
let __cell = -1
const __show = async (value) => {
  const show = value?.[Symbol.for('Jupyter.display')]
  if (value !== undefined) __outputs[__cell].push(show ? await show.call(value) : { 'text/plain': String(value) })
}
globalThis.Deno = { jupyter: { display: __show } }
`

/** A module of the cells; measured ones are left out, and show nothing. */
function moduleOf(notebook) {
  const parts = codeCells(notebook).map((cell, k) => {
    const begin = `__outputs[(__cell = ${k})] = []\n`
    return isMeasured(cell) ? begin : begin + shown(textOf(cell.source))
  })
  return [PRELUDE, ...parts, '__write(process.argv[2], JSON.stringify(__outputs))\n'].join('\n')
}

/** JavaScript in which statements begin lines, and nothing else does: templates are written as sums. */
const PRINTED = {
  loader: 'ts',
  target: 'es2022',
  supported: { 'template-literal': false },
  tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
}
const STATEMENT =
  /^(import|export|const|let|var|function|async function|class|for|if|try|while|do|switch|throw|\{)\b/

/** The cell's text with its last value shown, as Jupyter does. */
function shown(source) {
  const lines = transformSync(source, PRINTED).code.trimEnd().split('\n')
  const last = lines.findLastIndex((line) => /^[^\s)\]}]/.test(line))
  if (STATEMENT.test(lines[last])) return `${lines.join('\n')}\n`
  const value = lines.slice(last).join('\n').replace(/;$/, '')
  return `${lines.slice(0, last).join('\n')}\nawait __show(${value})\n`
}

/**
 * The notebook with the outputs that its cells give now, measured ones without.
 * @throws with what the process said, where a cell fails
 */
export async function replayed(path, notebook) {
  const work = join(root, 'node_modules/.cache/notebooks')
  mkdirSync(work, { recursive: true })
  const name = `${basename(path, '.ipynb')}-${process.pid}`
  const [file, out] = [join(work, `${name}.mjs`), join(work, `${name}.json`)]
  try {
    // What cells name is seen from the notebooks' folder, and the package is this one.
    const text = moduleOf(notebook)
      .replaceAll(/from "(\.\.?\/[^"]*)"/g, (_, to) => `from "${join(root, 'notebooks', to)}"`)
      .replaceAll(/from "(sparsetile[^"]*)"/g, (_, name) => `from "${import.meta.resolve(name)}"`)
    writeFileSync(file, text)
    await promisify(execFile)(process.execPath, [file, out], {
      cwd: join(root, 'notebooks'),
      timeout: 1000 * LIMIT,
      maxBuffer: 2 ** 26,
    })
    const outputs = JSON.parse(readFileSync(out, 'utf8'))
    let k = 0
    const cells = notebook.cells.map((cell) =>
      cell.cell_type === 'code'
        ? {
            ...cell,
            outputs: outputs[k++].map((data) => ({ output_type: 'display_data', data, metadata: {} })),
          }
        : cell,
    )
    return { ...notebook, cells }
  } finally {
    for (const f of [file, out]) rmSync(f, { force: true })
  }
}
