/** JavaScript over typed arrays: one module of functions, which run their blocks and threads one after the other. */
import { usesOf } from '../../launch-uses.ts'
import type { Target } from '../../target.ts'
import { jsModule } from './module.ts'

export const JS = {
  device: 'cpu',
  scheduledAs: 'cpu',
  parallel: false,
  grid: false,
  extension: '.js',
  // Its variables are doubles, and no engine keeps an element of a typed array in one.
  lowering: { promote: true },
  reusesShared: false,
  declared: { addresses: false },
  print: (plan) => [jsModule(plan, usesOf(plan))],
} as const satisfies Target
