/** Binding of kernels with formats: pages load this code with the first plan that has one (`web/formats`). */
import { runSync } from '../../ast/work.ts'
import { chainTo } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { checkLevelProperty } from '../../storage/assembly/level-property-checks.ts'
import { HOST } from '../../storage/engines/host/engine.ts'
import { bindPlan } from './bind-plan.ts'
import { routeOf } from './results/element-routes.ts'
import { remapSources } from './sources/remap-entries.ts'
import type { Structure } from './sources/structure-assembly.ts'
import type { Elsewhere } from './types.ts'

/** Checks all properties that formats claim for their axes, except of axes whose arrays are elsewhere, which were checked there. Throws SptError `format/claim`. */
function checkClaims(kernel: Kernel1, { levels }: Structure, elsewhere: Elsewhere): void {
  const { axes } = bindPlan(kernel)
  for (const r of kernel.reformats)
    for (const { instance } of r.instance.parts)
      for (const { axis, claim } of instance.claims) {
        const name = instance.names.get(axis) ?? axis
        // A later format may have replaced the axis.
        if (!levels.has(name) || elsewhere.levels.has(name)) continue
        const chain = chainTo(axes, name).map((a) => levels.get(a)!)
        runSync(checkLevelProperty(HOST, chain, claim))
      }
}

export const FORMAT_CODE = { checkClaims, remapSources, routeOf }
export type FormatCode = typeof FORMAT_CODE
