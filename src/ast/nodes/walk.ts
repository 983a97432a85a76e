/** Generic traversal of syntax trees, for rules that hold for nodes of every kind. */
import type { Name } from './nodes.ts'

/** A node as a traversal finds it: fields of every kind of node are possible. */
export interface AnyNode {
  readonly kind?: string
  readonly name?: unknown
}

/** Fields without nodes of the program. */
const SKIPPED: ReadonlySet<string> = new Set(['span', 'trivia'])

/** Visits a part of a tree and all nodes in it, parents first. `key`: the field that holds the node or its list. */
export function walkSyntax(part: unknown, visit: (node: AnyNode, key: string) => void, key = ''): void {
  if (typeof part !== 'object' || part === null) return
  if (!Array.isArray(part)) visit(part, key)
  for (const [k, x] of Object.entries(part))
    if (!SKIPPED.has(k)) walkSyntax(x, visit, Array.isArray(part) ? key : k)
}

/**
 * Returns a part of a tree with replacements: `replace` returns the replacement of a node, or undefined to continue
 * with its fields. Fields in `kept` stay the same objects.
 */
export function mapSyntax<T>(
  part: T,
  replace: (node: AnyNode, key: string) => unknown,
  kept: ReadonlySet<string> = SKIPPED,
): T {
  const go = (x: unknown, key: string): unknown => {
    if (Array.isArray(x)) return x.map((y: unknown) => go(y, key))
    if (typeof x !== 'object' || x === null) return x
    return (
      replace(x, key) ??
      Object.fromEntries(Object.entries(x).map(([k, y]) => [k, kept.has(k) ? y : go(y, k)]))
    )
  }
  return go(part, '') as T
}

/** The names that expressions in a part of a tree mention, except for buffers and functions. */
export function namesIn(part: unknown): readonly Name[] {
  const names: Name[] = []
  walkSyntax(part, (node) => {
    if (node.kind === 'name' && typeof node.name === 'string') names.push(node as Name)
  })
  return names
}
