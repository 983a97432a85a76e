/** Which of the schedules that nests have by themselves a kind of device takes. */
import type { DeviceKind } from '../backends/target.ts'

/** What takes the schedules that nests have by themselves. */
export interface Defaulted<K> {
  parallel(): K
  sequential(): K
}

/** What runs on a kind of device of what is compiled as it is: on threads, where there are some. */
export const runOn = <K extends Defaulted<K>>(made: K, kind: DeviceKind): K =>
  kind === 'cpu' ? made.sequential() : made.parallel()
