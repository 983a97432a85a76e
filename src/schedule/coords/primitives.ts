/** The primitives on coordinates; what else is known of them follows, as for those on loops. */
import { as } from './as.ts'
import { attach } from './attach.ts'
import { drop } from './drop.ts'
import { fuse } from './fuse.ts'
import { mask } from './mask.ts'
import { reorder } from './reorder.ts'

export const COORD_STEPS = { as, reorder, fuse, attach, mask, drop }
