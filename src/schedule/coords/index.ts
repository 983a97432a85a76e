/** Steps on coordinates, by kind. */
import type { Kernel1 } from '../../ir/stage1.ts'
import { applyAs } from './as.ts'
import { applyAttach } from './attach.ts'
import { checkCoordStep } from './check.ts'
import { applyFuse } from './fuse.ts'
import { applyReorder } from './reorder.ts'
import type { CoordStep } from './steps.ts'

/** Applies one step. @throws SptError `schedule/…`, `format/…` where it could change the result */
export function applyCoordStep(kernel: Kernel1, step: CoordStep): Kernel1 {
  checkCoordStep(step)
  switch (step.kind) {
    case 'as':
      return applyAs(kernel, step)
    case 'reorder':
      return applyReorder(kernel, step)
    case 'fuse':
      return applyFuse(kernel, step)
    case 'attach':
      return applyAttach(kernel, step)
  }
}
