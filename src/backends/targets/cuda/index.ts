/** CUDA C++: one module of kernels. */
import { launchUses } from '../../launch-uses.ts'
import type { Target } from '../../target.ts'
import { vectorAccesses } from '../../vectors/vectorize-accesses.ts'
import { cudaModule } from './module.ts'
import { CUDA as SPELLINGS, WARP } from './spellings.ts'

export const CUDA = {
  device: 'cuda',
  scheduleDevice: 'cuda',
  parallel: true,
  grid: true,
  extension: '.cu',
  lowering: { lanes: WARP },
  reusesShared: true,
  declared: { addresses: true, alternative: '`cuda from 9.0`: the least version of the device' },
  print: (plan) => {
    const vectors = vectorAccesses(plan, SPELLINGS)
    return [cudaModule(vectors, launchUses(vectors))]
  },
} as const satisfies Target
