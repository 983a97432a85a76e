/** What texts for targets need of them. */
import type * as Ast from '../../ast/nodes.ts'

export const TARGETS: readonly string[] = ['cuda', 'wgsl', 'js']

/** Extensions of the target's language (`f16`), and properties of the device (`lanes(32)`), by name. */
export function needsOf(needs: readonly Ast.Need[]): { readonly needs?: readonly string[] } {
  if (needs.length === 0) return {}
  return { needs: needs.map((n) => n.name.name + (n.args.length > 0 ? `(${n.args.join(', ')})` : '')) }
}
