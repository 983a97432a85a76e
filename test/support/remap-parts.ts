/** Coordinate remapping at once. */
import { runSync } from '../../src/ast/work.ts'
import { remapping } from '../../src/run/bind/sources/remap-entries.ts'

export const remapParts = (...args: Parameters<typeof remapping>) => runSync(remapping(...args))
