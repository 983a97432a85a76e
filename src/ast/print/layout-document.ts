/**
 * A small layout algebra: a group is printed on one line if it fits, otherwise all its own breaks become line breaks.
 */
export type Doc =
  | string
  | readonly Doc[]
  | { readonly kind: 'line'; readonly flat: string }
  | { readonly kind: 'group'; readonly doc: Doc }
  | { readonly kind: 'nest'; readonly doc: Doc }

const INDENT = 2

/** A space or a line break. */
export const line: Doc = { kind: 'line', flat: ' ' }
/** Nothing or a line break. */
export const softline: Doc = { kind: 'line', flat: '' }
export const group = (...doc: Doc[]): Doc => ({ kind: 'group', doc })
export const nest = (...doc: Doc[]): Doc => ({ kind: 'nest', doc })

/** Items of at most this width share lines; longer items get a line each. */
const SHORT_ITEM = 30

/** `open a, b, c close`; if they do not fit on one line, short items fill lines, and long ones get a line each. */
export function bracketList(open: string, items: readonly Doc[], close: string): Doc {
  if (items.length === 0) return open + close
  const areShort = items.every((d) => fits(d, [], SHORT_ITEM))
  return group(open, nest(softline, areShort ? filled(items) : commaSeparated(items)), softline, close)
}

/** `a, b, c`, in lines that are as full as possible. */
export const filled = (items: readonly Doc[]): Doc =>
  items.map((d, k) => (k === 0 ? d : [',', group(line, d)]))

/** The items, with a separator between neighbours. */
export const separated = <T>(items: readonly T[], separator: Doc, doc: (item: T) => Doc): Doc =>
  items.flatMap((x, k) => (k === 0 ? [doc(x)] : [separator, doc(x)]))

export const commaSeparated = (items: readonly Doc[]): Doc => separated(items, [',', line], (d) => d)

type Frame = readonly [indent: number, flat: boolean, doc: Doc]

/**
 * Lays a document out in lines of at most `width` characters, if its breaks allow it; the first line starts at
 * `indent`.
 */
export function layout(doc: Doc, indent: number, width: number): string {
  let out = ''
  let column = indent
  const stack: Frame[] = [[indent, false, doc]]
  for (let top = stack.pop(); top; top = stack.pop()) {
    const [i, flat, d] = top
    if (typeof d === 'string') {
      out += d
      column += d.length
    } else if (isList(d)) {
      for (let k = d.length - 1; k >= 0; k--) stack.push([i, flat, d[k]!])
    } else if (d.kind === 'nest') {
      stack.push([i + INDENT, flat, d.doc])
    } else if (d.kind === 'group') {
      stack.push([i, flat || fits(d.doc, stack, width - column), d.doc])
    } else if (flat) {
      out += d.flat
      column += d.flat.length
    } else {
      out += `\n${' '.repeat(i)}`
      column = i
    }
  }
  return out
}

const isList = (d: Doc): d is readonly Doc[] => Array.isArray(d)

/** True if `doc` on one line, together with the text up to the next line break, has at most `available` characters. */
function fits(doc: Doc, frames: readonly Frame[], available: number): boolean {
  const stack: (readonly [boolean, Doc])[] = [[true, doc]]
  let remaining = available
  let depth = frames.length
  while (remaining >= 0) {
    let top = stack.pop()
    if (!top) {
      if (depth === 0) return true
      const frame = frames[--depth]!
      top = [frame[1], frame[2]]
    }
    const [flat, d] = top
    if (typeof d === 'string') remaining -= d.length
    else if (isList(d)) for (let k = d.length - 1; k >= 0; k--) stack.push([flat, d[k]!])
    else if (d.kind === 'line') {
      if (!flat) return true
      remaining -= d.flat.length
    } else stack.push([flat, d.doc])
  }
  return false
}
