/** A check that a text is well-formed XML without declarations, as far as SVG needs it. */

const NAME = '[A-Za-z_][\\w:.-]*'
const VALUE = '"(?:[^<&"]|&(?:amp|lt|gt|quot);)*"'
const TAG = new RegExp(`<(/?)(${NAME})((?:\\s+${NAME}=${VALUE})*)\\s*(/?)>`, 'y')
const TEXT = /(?:[^<&>]|&(?:amp|lt|gt|quot);)+/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: what XML forbids.
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udfff]/u

/** The names of all elements, in order; throws with the place where the text is not XML. */
export function wellFormed(text: string): string[] {
  const names: string[] = []
  const open: string[] = []
  const bad = (at: number, why: string): never => {
    throw new Error(`${why} at ${at}: ${text.slice(at, at + 60)}`)
  }
  const forbidden = FORBIDDEN.exec(text)
  if (forbidden) bad(forbidden.index, 'a forbidden character')
  for (let at = 0; at < text.trimEnd().length; ) {
    const pattern = text[at] === '<' ? TAG : TEXT
    pattern.lastIndex = at
    const match = pattern.exec(text) ?? bad(at, 'neither tag nor text')
    at = pattern.lastIndex
    if (pattern === TEXT) {
      if (open.length === 0) bad(match.index, 'text outside of the root')
      continue
    }
    const [, closing, name, attributes, empty] = match
    const keys = [...attributes!.matchAll(new RegExp(`(${NAME})=`, 'g'))].map((m) => m[1])
    if (new Set(keys).size !== keys.length) bad(match.index, 'an attribute twice')
    if (closing) {
      if (open.pop() !== name) bad(match.index, 'an end without its beginning')
      continue
    }
    if (open.length === 0 && names.length > 0) bad(match.index, 'a second root')
    names.push(name!)
    if (!empty) open.push(name!)
  }
  if (open.length > 0) bad(text.length, `${open.join(', ')} without an end`)
  return names
}
