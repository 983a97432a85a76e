/** Trees of statements and expressions as plain data: names, and identity of nodes. */
import { enableMemo } from './memoize.ts'

/** A copy of a tree in which texts are renamed; unchanged nodes are not copied. */
export function renamed<T>(root: T, rename: (text: string, field: string, of: object) => string): T {
  const copies = new Map<object, object>()
  const visit = (value: unknown, field: string, of: object): unknown => {
    if (typeof value === 'string') return rename(value, field, of)
    if (typeof value !== 'object' || value === null || KEPT.has(field)) return value
    const known = copies.get(value)
    if (known) return known
    const list = Array.isArray(value)
    const fields = value as Readonly<Record<string, unknown>>
    let copy: Record<string, unknown> | undefined
    for (const key in fields) {
      const v = visit(fields[key], list ? field : key, value)
      // A copy by spreading shares the hidden class of the node.
      if (v !== fields[key]) (copy ??= (list ? [...value] : { ...value }) as Record<string, unknown>)[key] = v
    }
    if (copy) Object.freeze('kind' in copy ? enableMemo(copy) : copy)
    copies.set(value, copy ?? value)
    return copy ?? value
  }
  return visit(root, '', {}) as T
}

/** Fields without names of the kernel. */
const KEPT: ReadonlySet<string> = new Set(['span', 'reducer', 'instr', 'memory'])

/** For `JSON.stringify`: a node that occurs again is a number, because trees share nodes. Infinities and NaN are distinguished. */
export function nodesOnce(): (key: string, value: unknown) => unknown {
  const nodes = new Map<object, number>()
  return (key, value) => {
    if (key === 'span') return undefined
    if (typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0)))
      return Object.is(value, -0) ? '-0' : String(value)
    if (typeof value !== 'object' || value === null || isLeaf(value)) return value
    const node = nodes.get(value)
    if (node === undefined) nodes.set(value, nodes.size)
    return node ?? value
  }
}

/** True for a constant or a variable, of which a tree may hold equal nodes. */
const isLeaf = (value: object): boolean => 'kind' in value && (value.kind === 'const' || value.kind === 'var')
