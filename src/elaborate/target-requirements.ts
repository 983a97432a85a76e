/** What texts for targets need of them. */
import type * as Ast from '../ast/nodes.ts'
import type { Report } from './diagnostics.ts'
import type { Values } from './instances.ts'

export const TARGETS: readonly string[] = ['cuda', 'wgsl', 'js']

/** What a text can name, with how many arguments; without any, an extension of the language. */
const NEEDS: ReadonlyMap<string, ReadonlyMap<string, number>> = new Map([
  [
    'wgsl',
    new Map([
      ['f16', 0],
      ['subgroups', 0],
      ['lanes', 1],
      ['subgroup_size', 1],
      ['subgroup_matrix', 5],
    ]),
  ],
])
/** Extensions that implementations try out come and go. */
export const EXPERIMENTAL = /^chromium_\w+$/

/** Extensions of the target's language (`f16`), and properties of the device (`lanes(32)`), by name. */
export function needsOf(
  needs: readonly Ast.Need[],
  target: string,
  values: Values,
  report: Report,
): { readonly needs?: readonly string[] } {
  if (needs.length === 0) return {}
  for (const n of needs) checkNeed(n, target, report)
  const args = (n: Ast.Need): string => n.args.map((a) => values.get(a) ?? a).join(', ')
  return { needs: needs.map((n) => n.name.name + (n.args.length > 0 ? `(${args(n)})` : '')) }
}

function checkNeed({ name: { name, span }, args }: Ast.Need, target: string, report: Report): void {
  const known = NEEDS.get(target)
  if (!known) {
    report.error({
      code: 'check/unknown-need',
      message: `texts for ${target} name nothing that they need`,
      span,
      hint:
        target === 'cuda'
          ? '`cuda from 9.0`: the least version of the device'
          : 'leave out `needs`, which texts for wgsl have',
    })
    return
  }
  const count = known.get(name) ?? (EXPERIMENTAL.test(name) ? 0 : undefined)
  if (count === args.length) return
  const shown = (n: string, k: number): string =>
    k === 0 ? n : k === 1 ? `${n}(n)` : `${n}(m, n, k, type, type)`
  report.error({
    code: 'check/unknown-need',
    message:
      count === undefined
        ? `${target} has no ${name} that a text could need`
        : `${name} has ${count} argument${count === 1 ? '' : 's'}, not ${args.length}`,
    span,
    expected:
      count === undefined
        ? [...[...known].map(([n, k]) => shown(n, k)), 'chromium_…'].join(', ')
        : shown(name, count),
    ...(count === undefined ? { lookup: { name, candidates: [...known.keys()] } } : {}),
  })
}
