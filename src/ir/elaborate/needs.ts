/** What texts for targets need of them. */
import type * as Ast from '../../ast/nodes.ts'
import type { Values } from './instances.ts'

export const TARGETS: readonly string[] = ['cuda', 'wgsl', 'js']

/** Extensions of the target's language (`f16`), and properties of the device (`lanes(32)`), by name. */
export function needsOf(needs: readonly Ast.Need[], values: Values): { readonly needs?: readonly string[] } {
  if (needs.length === 0) return {}
  const args = (n: Ast.Need): string => n.args.map((a) => values.get(a) ?? a).join(', ')
  return { needs: needs.map((n) => n.name.name + (n.args.length > 0 ? `(${args(n)})` : '')) }
}
