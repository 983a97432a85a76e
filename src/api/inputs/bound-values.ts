/** Values bound to a kernel: tensors, sizes, and list or set arguments of formats. */
import { byName } from '../../ast/by-name.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { agreedSizes } from '../../run/bind/sizes/bound-sizes.ts'
import { allAxesOf, callerTensor } from '../../run/bind/sources/caller-tensors.ts'
import type { ResidentTensor } from '../../storage/engines/device/index.ts'
import type { Tensor } from '../../storage/tensor.ts'

/** Values that are bound to a kernel, by name. */
export interface BoundValues {
  /** The schedule or space that depends on the values, by keyword and name, such as `schedule auto`. */
  readonly by: string
  readonly tensors: Readonly<Record<string, Tensor>>
  readonly resident: Readonly<Record<string, ResidentTensor>>
  readonly params: Readonly<Record<string, number>>
  readonly seed: number | undefined
  /** Statistics given by the caller, by name. */
  readonly statistics: ReadonlyMap<string, number>
  /** List and set arguments of formats, by name. */
  readonly beside: Readonly<Record<string, Tensor>>
}

/**
 * True if the kernel declares a buffer or an axis of that name. Other bound names belong to formats: their lists, sets and parts.
 * `used`: the names that formats take; an axis of such a name does not count.
 */
export const isDeclared = (kernel: Kernel1, name: string, used: Pick<ReadonlySet<string>, 'has'>): boolean =>
  callerTensor(kernel, name) !== undefined || (allAxesOf(kernel).has(name) && !used.has(name))

/** The bound values whose names the kernel declares. */
export const declaredOf = <T>(
  kernel: Kernel1,
  bound: Readonly<Record<string, T>>,
  used: Pick<ReadonlySet<string>, 'has'>,
): Record<string, T> => byName(Object.entries(bound).filter(([name]) => isDeclared(kernel, name, used)))

/**
 * The given sizes, and the sizes that the shapes of tensors determine.
 * @throws SptError `bind/size-mismatch` if two of them differ, `bind/size-range`
 */
export const sizesOf = (
  kernel: Kernel1,
  { tensors, resident, params }: Pick<BoundValues, 'tensors' | 'resident' | 'params'>,
): Map<string, number> =>
  agreedSizes(kernel, [...Object.entries(tensors), ...Object.entries(resident)], params)
