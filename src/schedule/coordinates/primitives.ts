/** The table of primitives on coordinates, from which their syntax, methods and documentation are derived. */
import { as } from './as/as.ts'
import { attach } from './attach.ts'
import { drop } from './drop.ts'
import { fuse } from './fuse.ts'
import { mask } from './mask.ts'
import { reorder } from './reorder.ts'

export const COORD_STEPS = { as, reorder, fuse, attach, mask, drop }
