/** Inputs of a kernel with random tensors, generated from a seed, for missing ones. */
import { byName } from '../../ast/by-name.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { type Bound, bindInputs, type Inputs } from '../../run/bind/index.ts'
import { extentsOf } from '../../run/bind/sources/coordinate-sources.ts'
import { declaredOf } from './bound-inputs.ts'

/**
 * Returns the inputs of the unscheduled kernel, with random tensors for missing ones. Undeclared names are kept. Throws SptError like
 * `bindInputs`.
 */
export function randomInputs(
  source: Kernel1,
  inputs: Inputs,
  used: Pick<ReadonlySet<string>, 'has'>,
): Inputs {
  const { tensors = {} } = inputs
  const declared = { ...inputs, tensors: declaredOf(source, tensors, used) }
  const drawn = withRandom(bindInputs(source, declared), declared).inputs
  return { ...inputs, tensors: byName(Object.entries({ ...tensors, ...drawn.tensors })) }
}

/** Adds the generated random tensors to the inputs, because other formats would generate different ones. */
export function withRandom(bound: Bound, inputs: Inputs): { bound: Bound; inputs: Inputs } {
  const { kernel, params } = bound
  const tensors = byName(Object.entries(inputs.tensors ?? {}))
  const extents = extentsOf(kernel, params)
  for (const name of bound.random) {
    const dense = bound.dense.get(name)
    const source = dense ? undefined : bound.sources.find((s) => s.name === name)
    if (!dense && !source) continue
    tensors[name] = dense ??
      source!.tensor ?? {
        kind: 'coords',
        shape: source!.axes.map((a) => extents.get(a) ?? 0),
        coords: source!.columns,
        values: null,
        dtype: 'f32',
      }
  }
  return { bound, inputs: { ...inputs, tensors } }
}
