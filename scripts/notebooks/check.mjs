// What is refused of a stored notebook.
import { codeCells, normalised, printed, textHash, textOf } from './document.mjs'

/** A file is read by people and kept in the repository. */
const MOST_BYTES = 800_000

/**
 * Everything that is wrong with a notebook as it is stored, as lines; none where all is well.
 * @param text of the file
 * @param version of the package
 */
export function complaints(text, version) {
  const notebook = JSON.parse(text)
  const out = []
  if (text.length > MOST_BYTES) out.push(`${text.length} bytes; at most ${MOST_BYTES}`)
  if (printed(normalised(notebook)) !== text) out.push('not written as `execute` and `normalise` do')
  const cells = codeCells(notebook)
  if (cells.length === 0) out.push('no code')
  if (notebook.cells[0]?.cell_type !== 'markdown' || !textOf(notebook.cells[0].source).startsWith('# '))
    out.push('the first cell is no title')
  if (notebook.metadata?.sparsetile?.text !== textHash(notebook, version))
    out.push('its outputs are not of the present text: execute it')
  cells.forEach((cell, k) => {
    if (cell.execution_count !== k + 1) out.push(`cell ${k + 1} ran as ${cell.execution_count}`)
    else if (cell.outputs.length === 0) out.push(`cell ${k + 1} shows nothing`)
    for (const output of cell.outputs) out.push(...ofOutput(output).map((why) => `cell ${k + 1}: ${why}`))
  })
  return out
}

function ofOutput(output) {
  if (output.output_type === 'error') return [`${output.ename}: ${output.evalue}`]
  if (output.output_type === 'stream')
    return [
      ...(output.name === 'stderr' ? [`wrote to stderr: ${textOf(output.text).trim()}`] : []),
      ...(textOf(output.text).includes('\u001b') ? ['has colours of terminals'] : []),
    ]
  const types = Object.keys(output.data)
  const texts = types.filter((t) => t.startsWith('text/')).map((t) => textOf(output.data[t]))
  const png = output.data['image/png']
  return [
    ...(types.includes('text/plain') ? [] : ['has no text/plain']),
    ...(types.some((t) => t.startsWith('image/svg')) ? ['has SVG, which viewers empty'] : []),
    ...(texts.some((t) => t.includes('\u001b')) ? ['has colours of terminals'] : []),
    ...(png === undefined || isPng(Buffer.from(png, 'base64')) ? [] : ['has a damaged PNG']),
  ]
}

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/** Whether bytes begin and end as a PNG file does, chunk by chunk. */
export function isPng(bytes) {
  if (!bytes.subarray(0, 8).equals(SIGNATURE)) return false
  const names = []
  let at = 8
  for (; at + 12 <= bytes.length; at += 12 + bytes.readUInt32BE(at))
    names.push(bytes.toString('latin1', at + 4, at + 8))
  return at === bytes.length && names[0] === 'IHDR' && names.at(-1) === 'IEND' && names.includes('IDAT')
}
