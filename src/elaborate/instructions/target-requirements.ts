/** Requirements of target texts (`needs`). */
import { orList } from '../../ast/diagnostics/suggest.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { DeclaredTexts } from '../../backends/target.ts'
import { TARGET_NAMES, TARGETS, type TargetName } from '../../backends/targets/index.ts'
import { EXPERIMENTAL } from '../choices/device-features.ts'
import { report } from '../diagnostics.ts'
import type { Values } from './instances.ts'

export function targetNamed({ name, span }: Ast.Ident): TargetName | null {
  const known = TARGET_NAMES.find((t) => t === name)
  if (known) return known
  return report('check/unknown-target', span, {
    message: `there is no target ${name}`,
    lookup: { name, candidates: TARGET_NAMES },
  })
}

/**
 * The requirements by name: extensions of the target's language (`f16`), and properties of the device (`lanes(32)`).
 * Reports unknown requirements.
 */
export function needsOf(
  needs: readonly Ast.Need[],
  target: TargetName,
  values: Values,
): { readonly needs?: readonly string[] } {
  if (needs.length === 0) return {}
  for (const n of needs) checkNeed(n, target)
  const args = (n: Ast.Need): string => n.args.map((a) => values.get(a) ?? a).join(', ')
  return { needs: needs.map((n) => n.name.name + (n.args.length > 0 ? `(${args(n)})` : '')) }
}

const declaredIn = (target: TargetName): DeclaredTexts => TARGETS[target].declared
const withNeeds = TARGET_NAMES.filter((t) => declaredIn(t).needs)

function checkNeed({ name: { name, span }, args }: Ast.Need, target: TargetName): void {
  const { needs: known, alternative: instead } = declaredIn(target)
  if (!known) {
    report('check/unknown-need', span, {
      message: `\`needs\` is not possible in code for ${target}`,
      hint: instead ?? `leave out \`needs\`, which texts for ${orList(withNeeds)} have`,
    })
    return
  }
  const count = known.get(name) ?? (EXPERIMENTAL.test(name) ? 0 : undefined)
  if (count === args.length) return
  const shown = (n: string, k: number): string =>
    k === 0 ? n : k === 1 ? `${n}(n)` : `${n}(m, n, k, type, type)`
  report('check/unknown-need', span, {
    message:
      count === undefined
        ? `${target} has no ${name} that a text could need`
        : `${name} has ${count} argument${count === 1 ? '' : 's'}, not ${args.length}`,
    expected:
      count === undefined
        ? [...[...known].map(([n, k]) => shown(n, k)), 'chromium_…'].join(', ')
        : shown(name, count),
    ...(count === undefined && { lookup: { name, candidates: [...known.keys()] } }),
  })
}
