/** C11 with OpenMP: one function per launch, whose blocks run in parallel. The code is only printed; no device runs it. */
import { launchUses } from '../../launch-uses.ts'
import type { Target } from '../../target.ts'
import { cModule } from './module.ts'

export const C = {
  device: null,
  scheduleDevice: 'cpu',
  parallel: true,
  grid: false,
  extension: '.c',
  lowering: { promote: true },
  reusesShared: false,
  declared: { addresses: false },
  print: (plan) => [cModule(plan, launchUses(plan))],
} as const satisfies Target
