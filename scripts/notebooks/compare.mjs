// Whether running a notebook again gives what is stored.
import { codeCells, isMeasured, textOf } from './document.mjs'

/** The notebook with short measurements, for a comparison that does not read times. */
export const briefly = (notebook) => ({
  ...notebook,
  cells: notebook.cells.map((cell) =>
    isMeasured(cell)
      ? { ...cell, source: textOf(cell.source).replace(/\b(warmups|rounds): \d+/g, '$1: 2') }
      : cell,
  ),
})

/** The same of the cells that are not measured, where the others were not run. */
export function unlike(stored, ran) {
  const unmeasured = (notebook) => ({
    cells: notebook.cells.map((c) => (isMeasured(c) ? { ...c, outputs: [] } : c)),
  })
  return differences(unmeasured(stored), unmeasured(ran))
}

/** Cells whose outputs differ, with the first line that does. Of measured cells, only what kinds of outputs there are. */
export function differences(stored, ran) {
  const cells = codeCells(ran)
  return codeCells(stored).flatMap((cell, k) => {
    const [before, now] = [cell, cells[k]].map((c) =>
      isMeasured(cell) ? kinds(c.outputs) : contents(c.outputs),
    )
    if (before === now) return []
    const [a, b] = [before.split('\n'), now.split('\n')]
    const at = a.findIndex((line, n) => line !== b[n])
    return [
      `cell ${k + 1} gives something else than what is stored: execute it, and look at what has changed
  stored: ${brief(a[at])}
  now:    ${brief(b[at])}`,
    ]
  })
}

const brief = (line = 'nothing') => (line.length > 160 ? `${line.slice(0, 160)}…` : line)

/** Types of media of each output. What is written to a stream may come in pieces or not at all. */
const kinds = (outputs) =>
  outputs
    .map((o) => (o.output_type === 'stream' ? o.name : Object.keys(o.data ?? { [o.ename]: 0 }).join(' ')))
    .join('\n')

const contents = (outputs) =>
  outputs
    .map((o) =>
      o.output_type === 'stream'
        ? textOf(o.text)
        : Object.entries(o.data ?? { error: `${o.ename} ${o.evalue}` })
            .map(([type, content]) => `${type}: ${textOf(content)}`)
            .join('\n'),
    )
    .join('\n')
