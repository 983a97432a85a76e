/** WGSL: a module for each launch. */

import { type LaunchUse, launchUses } from '../../launch-uses.ts'
import { capabilitiesOf } from '../../print/instr-calls.ts'
import type { Target } from '../../target.ts'
import { vectorAccesses } from '../../vectors/vectorize-accesses.ts'
import { splitBranches } from './branch-splitting.ts'
import { rejectDeepNesting, rejectF64 } from './limits.ts'
import { wgslModules } from './module.ts'
import { wgsl } from './spellings.ts'

export const WGSL = {
  device: 'webgpu',
  scheduleDevice: 'webgpu',
  parallel: true,
  grid: true,
  extension: '.wgsl',
  lowering: {},
  reusesShared: false,
  declared: {
    addresses: false,
    needs: new Map([
      ['f16', 0],
      ['subgroups', 0],
      ['lanes', 1],
      ['subgroup_size', 1],
      ['subgroup_matrix', 5],
    ]),
  },
  print: (plan, options) => {
    rejectF64(plan)
    rejectDeepNesting(plan)
    const table = wgsl(options.f16 ?? launchUses(plan).some(needsF16))
    const split = splitBranches(vectorAccesses(plan, table))
    return wgslModules(split, launchUses(split), table)
  },
} as const satisfies Target

const needsF16 = (use: LaunchUse): boolean => capabilitiesOf(use, 'wgsl').some((c) => c.name === 'f16')
