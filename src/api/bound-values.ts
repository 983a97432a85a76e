/** Bound values that the text of a kernel declares: tensors, sizes and what formats take besides. */
import { byName } from '../ast/by-name.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { agreedSizes } from '../run/bind/bound-sizes.ts'
import { allAxesOf, callerTensor } from '../run/bind/caller-tensors.ts'
import type { Resident } from '../storage/engines/device/index.ts'
import type { Tensor } from '../storage/tensor.ts'

/** What is bound to a kernel, under the names that its text declares. */
export interface BoundValues {
  /** The schedule or space that the values decide, by its keyword and name: `schedule auto`. */
  readonly by: string
  readonly tensors: Readonly<Record<string, Tensor>>
  readonly resident: Readonly<Record<string, Resident>>
  readonly params: Readonly<Record<string, number>>
  readonly seed: number | undefined
  /** Statistics that are known already, by name. */
  readonly statistics: ReadonlyMap<string, number>
  /** Lists and sets that formats take. */
  readonly beside: Readonly<Record<string, Tensor>>
}

/**
 * Whether the kernel's text declares a buffer or an axis of that name; formats have lists, sets and parts beside. `used`: what formats
 * take by name, which is none of the axes.
 */
export const isDeclared = (kernel: Kernel1, name: string, used: Pick<ReadonlySet<string>, 'has'>): boolean =>
  callerTensor(kernel, name) !== undefined || (allAxesOf(kernel).has(name) && !used.has(name))

/** Those of what is bound that the kernel's text declares. */
export const declaredOf = <T>(
  kernel: Kernel1,
  bound: Readonly<Record<string, T>>,
  used: Pick<ReadonlySet<string>, 'has'>,
): Record<string, T> => byName(Object.entries(bound).filter(([name]) => isDeclared(kernel, name, used)))

/**
 * Sizes as they are given, and those that the shapes of tensors are.
 * @throws SptError `bind/size-mismatch` where they do not agree, `bind/size-range`
 */
export const sizesOf = (
  kernel: Kernel1,
  { tensors, resident, params }: Pick<BoundValues, 'tensors' | 'resident' | 'params'>,
): Map<string, number> =>
  agreedSizes(kernel, [...Object.entries(tensors), ...Object.entries(resident)], params)
