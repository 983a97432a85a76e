/** Selection of the default schedule for a kind of device. */
import type { DeviceKind } from '../../backends/target.ts'

export interface Defaulted<K> {
  parallel(): K
  sequential(): K
}

/** Returns the default schedule for a kind of device: sequential on cpu, parallel on GPUs. */
export const runOn = <K extends Defaulted<K>>(made: K, kind: DeviceKind): K =>
  kind === 'cpu' ? made.sequential() : made.parallel()
