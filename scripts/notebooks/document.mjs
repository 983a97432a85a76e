// Notebooks as text: one way to write each down, so that a change of a cell changes its lines and no others.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Paths of the notebooks in a folder, or of those with these names (`first-steps`, `first-steps.ipynb`). */
export function notebooksIn(folder, names = []) {
  const all = readdirSync(folder)
    .filter((f) => f.endsWith('.ipynb'))
    .sort()
  const wanted = names.map((n) => (n.endsWith('.ipynb') ? n : `${n}.ipynb`))
  const unknown = wanted.find((n) => !all.includes(n))
  if (unknown !== undefined)
    throw new Error(`there is no ${join(folder, unknown)}; there are ${all.join(', ')}`)
  return (wanted.length > 0 ? wanted : all).map((f) => join(folder, f))
}

export const readNotebook = (path) => JSON.parse(readFileSync(path, 'utf8'))

/** Text of a source or an output: a list of lines, or one text. */
export const textOf = (source) => (Array.isArray(source) ? source.join('') : source)

const linesOf = (text) => text.match(/[^\n]*\n|[^\n]+$/g) ?? []

export const codeCells = (notebook) => notebook.cells.filter((c) => c.cell_type === 'code')

/** Outputs of such cells differ from run to run: times. */
export const isMeasured = (cell) => (cell.metadata?.tags ?? []).includes('measured')

/** What stored outputs are of: the cells' texts, and the package's version. */
export function textHash(notebook, version) {
  const hash = createHash('sha256').update(`${version}\n`)
  for (const c of notebook.cells) hash.update(`${JSON.stringify([c.cell_type, textOf(c.source)])}\n`)
  return hash.digest('hex')
}

const KERNEL = {
  kernelspec: { display_name: 'Deno', language: 'typescript', name: 'deno' },
  language_info: { file_extension: '.ts', mimetype: 'text/x.typescript', name: 'typescript' },
}

/**
 * The notebook as it is kept: nothing of who ran it and when. `outputsOf` is the hash of the text that its outputs are of;
 * without one what the notebook says of itself.
 */
export function normalised(notebook, outputsOf = notebook.metadata?.sparsetile?.text) {
  let executed = 0
  const cells = notebook.cells.map((cell, k) => {
    const { tags } = cell.metadata ?? {}
    const common = {
      cell_type: cell.cell_type,
      id: `cell-${k + 1}`,
      metadata: tags?.length > 0 ? { tags } : {},
    }
    const source = linesOf(textOf(cell.source).trimEnd())
    if (cell.cell_type !== 'code') return { ...common, source }
    const outputs = joined(cell.outputs ?? [])
    const count = cell.execution_count === null || cell.execution_count === undefined ? null : ++executed
    return { ...common, source, execution_count: count, outputs: outputs.map((o) => kept(o, count)) }
  })
  return {
    cells,
    metadata: { ...KERNEL, ...(outputsOf === undefined ? {} : { sparsetile: { text: outputsOf } }) },
    nbformat: 4,
    nbformat_minor: 5,
  }
}

/** What is written to one stream in pieces is one output. */
function joined(outputs) {
  const out = []
  for (const o of outputs) {
    const last = out.at(-1)
    if (o.output_type === 'stream' && last?.output_type === 'stream' && last.name === o.name)
      out[out.length - 1] = { ...last, text: textOf(last.text) + textOf(o.text) }
    else out.push(o)
  }
  return out
}

function kept(output, count) {
  const { output_type } = output
  if (output_type === 'stream') return { output_type, name: output.name, text: linesOf(textOf(output.text)) }
  if (output_type === 'error')
    return { output_type, ename: output.ename, evalue: output.evalue, traceback: output.traceback }
  const data = Object.fromEntries(
    Object.entries(output.data)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([type, content]) => [type, contentOf(type, content)]),
  )
  return output_type === 'execute_result'
    ? { output_type, execution_count: count, data, metadata: {} }
    : { output_type, data, metadata: {} }
}

function contentOf(type, content) {
  if (type.startsWith('image/png')) return textOf(content).replace(/\s/g, '')
  return typeof content === 'string' || Array.isArray(content) ? linesOf(textOf(content)) : content
}

export const printed = (notebook) => `${JSON.stringify(notebook, null, 1)}\n`
