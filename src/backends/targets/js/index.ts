/** JavaScript over typed arrays: a module of functions, which run blocks and threads serially. */
import { launchUses } from '../../launch-uses.ts'
import type { Target } from '../../target.ts'
import { jsModule } from './module.ts'

export const JS = {
  device: 'cpu',
  scheduleDevice: 'cpu',
  parallel: false,
  grid: false,
  extension: '.js',
  // No engine keeps an element of a typed array in a register, so elements are promoted to variables.
  lowering: { promote: true },
  reusesShared: false,
  declared: { addresses: false },
  print: (plan) => [jsModule(plan, launchUses(plan))],
} as const satisfies Target
