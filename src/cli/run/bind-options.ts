/** `--bind`, `--size` and `--out`, checked by name before any file is read. */

import { declaredOf } from '../../api/inputs/bound-inputs.ts'
import type { DeclaredInputs } from '../../api/inputs/format-input-binding.ts'
import { bindingAmong, checkBound, formatInputsFor } from '../../api/inputs/format-input-binding.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { failWith, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { readTensor, readTensorFor, WRITABLE } from '../../io/index.ts'
import type { ReadOptions } from '../../io/tensor-file-options.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { callerTensor, callerTensors } from '../../run/bind/bind-plan.ts'
import { type Binding, bindingIn, bindingOf } from '../../run/bind/binding-names.ts'
import { positionsOf, takesOffsets } from '../../run/bind/sizes/bound-offsets.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { type Call, NUMBER } from '../arguments/command.ts'
import { checkWritable } from '../arguments/paths.ts'

const NUMBER_WORDS: Readonly<Record<string, number>> = {
  inf: Number.POSITIVE_INFINITY,
  infinity: Number.POSITIVE_INFINITY,
  '-inf': Number.NEGATIVE_INFINITY,
  '-infinity': Number.NEGATIVE_INFINITY,
  nan: Number.NaN,
  true: 1,
  false: 0,
}

/** Values of `--size` by name. Blanks are removed from names of statistics such as `fill_ratio(W, tile_wise(128, 64))`. */
export function sizeOptions(call: Call): Map<string, number> {
  const out = new Map<string, number>()
  for (const [name, text] of call.pairs('size', 'N')) {
    const key = name.replace(/\s+/g, '')
    if (out.has(key)) call.reject(`--size ${name} is given twice`, { expected: 'one value' })
    out.set(key, parseSize(call, name, text))
  }
  return out
}

/** A value of `--size`. */
export function parseSize(call: Call, name: string, text: string): number {
  const word = text.trim().toLowerCase()
  const value = NUMBER.test(word)
    ? Number(word)
    : Object.hasOwn(NUMBER_WORDS, word)
      ? NUMBER_WORDS[word]
      : undefined
  return value ?? call.reject(`--size ${name}=${text} is not a number`, { expected: `--size ${name}=N` })
}

/** Files bound by name, the seed of random data, and the limit on rounds. */
export interface BindOptions {
  readonly files: ReadonlyMap<string, string>
  readonly seed: number
  readonly maxRounds: number | undefined
}

/** `--bind`, `--seed` and `--max-rounds`. */
export const bindOptions = (call: Call): BindOptions => ({
  files: call.pairs('bind', 'PATH'),
  seed: seedOf(call),
  maxRounds: call.integer('max-rounds', 1, 2 ** 31 - 1),
})

/** `--seed`. */
export const seedOf = (call: Call): number => call.integer('seed', 0, 2 ** 32 - 1) ?? 0

/**
 * Checks names of `--bind` and `--size`. `formatData`: lists and sets that formats of later schedules take.
 * @throws SptError `bind/unknown-name`, `bind/unknown-size`
 */
export function checkNames(
  kernel: Kernel1,
  bound: Iterable<string>,
  sizes: Iterable<string>,
  formatData: DeclaredInputs = new Map(),
): void {
  checkBound(kernel, bound, formatData)
  const candidates = kernel.params.filter((p) => !p.measured).map((p) => p.name)
  for (const name of sizes)
    if (!candidates.includes(name))
      failWith('bind/unknown-size', `kernel ${kernel.name} has no size or scalar ${name}`, {
        lookup: { name, candidates },
      })
}

/**
 * Files that are read before a schedule is selected by data: those of buffers and axes that the kernel declares. Lists, sets
 * and parts depend on the formats of the schedule.
 * @throws SptError `bind/unknown-name` for a name that no schedule takes
 */
export function declaredFiles(
  kernel: Kernel,
  files: ReadonlyMap<string, string>,
  formatData: DeclaredInputs,
): ReadonlyMap<string, string> {
  const declared = new Map(Object.entries(declaredOf(kernel.source, Object.fromEntries(files), formatData)))
  for (const name of files.keys())
    if (
      !declared.has(name) &&
      !formatData.has(name) &&
      kernel.schedules.every((s) => isUnknownTo(kernel, s, name))
    )
      checkBound(kernel.source, [name], formatData)
  return declared
}

/** Adds to errors about unknown names the schedules whose formats take these names. */
export async function suggestSchedules<T>(kernel: Kernel, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof SptError)) throw error
    const diagnostics = error.diagnostics.map((d) => {
      const name = d.code === 'bind/unknown-name' ? d.lookup?.name : undefined
      const schedules =
        name === undefined ? [] : kernel.schedules.filter((s) => !isUnknownTo(kernel, s, name))
      return schedules.length === 0
        ? d
        : {
            ...d,
            expected: `${d.expected}; or a schedule that takes ${name}: --schedule ${schedules.join(', ')}`,
          }
    })
    const { sources } = error
    throw Object.assign(new SptError(diagnostics), { sources })
  }
}

/** True if the kernel under the schedule has no such buffer, axis, list, set or part. Required arguments are set to 1. */
function isUnknownTo(kernel: Kernel, schedule: string, name: string): boolean {
  const args = kernel.parameters(schedule).map((p) => (p.required ? 1 : undefined))
  return resultOrError(() => bindingIn(kernel.schedule(schedule, ...args).compilation.kernel, name)) === null
}

/** Adds the remaining files that the scheduled kernel takes; data of other schedules are skipped. @throws SptError as `checkNames` */
export async function readRemaining(
  kernel: Kernel1,
  files: ReadonlyMap<string, string>,
  tensors: Readonly<Record<string, Tensor>>,
  sizes: ReadonlyMap<string, number>,
  formatData: DeclaredInputs,
): Promise<Record<string, Tensor>> {
  const remaining = new Map([...files].filter(([name]) => !Object.hasOwn(tensors, name)))
  const accepted = new Map(Object.entries(formatInputsFor(kernel, Object.fromEntries(remaining), formatData)))
  return { ...tensors, ...(await readInputs(kernel, accepted, sizes)) }
}

/** Checks names and paths of `--out` before the run. @throws SptError `run/unknown-output`, `io/…` */
export async function checkOutputs(kernel: Kernel1, outputs: ReadonlyMap<string, string>): Promise<void> {
  // Outputs with several parts are named as the caller declares them.
  const candidates = callerTensors(kernel)
    .filter(({ first: { role } }) => role === 'out' || role === 'inout')
    .map((t) => t.name)
  for (const [name, path] of outputs) {
    if (!candidates.includes(name))
      failWith('run/unknown-output', `kernel ${kernel.name} has no output ${name}`, {
        lookup: { name, candidates },
        hint: '--out takes buffers with the role out or inout',
      })
    if (!WRITABLE.some((e) => path.toLowerCase().endsWith(e)))
      failWith('io/unknown-extension', `the name '${path}' does not determine a file format`, {
        expected: WRITABLE.join(' '),
      })
    await checkWritable(path)
  }
}

/**
 * Reads the bound files. Files without a shape (edge lists, coordinate arrays) get their shape from `--size`. `formatData` is as
 * for `checkNames`.
 */
export async function readInputs(
  kernel: Kernel1,
  files: ReadonlyMap<string, string>,
  sizes: ReadonlyMap<string, number>,
  formatData: DeclaredInputs = new Map(),
): Promise<Record<string, Tensor>> {
  const tensors: [string, Tensor][] = []
  for (const [name, path] of files) {
    const { kind, dimensions } =
      bindingAmong(kernel, name, formatData) ?? formatBinding(kernel, name, formatData)
    if (kind === 'list' || kind === 'table') {
      tensors.push([name, await readTensor(path, { dtype: 'i32' })])
      continue
    }
    const extents = dimensions.map((d) => d.extent)
    const isSized = extents.length > 0 && extents.every((e) => [...freeVars(e)].every((v) => sizes.has(v)))
    const shape = isSized ? extents.map((e) => evaluate(e, sizes)) : undefined
    const valid = shape?.every((n) => Number.isInteger(n) && n >= 0)
    // A set contains whole tiles, without single elements next to the tiles.
    const tiles = kind === 'set'
    const isVector = dimensions.length === 1
    const isFlat = isVector || mayBeFlat(kernel, name, files)
    const dtype = callerTensor(kernel, name)?.first.dtype
    const tensor = await readBound(path, { ...(valid && { shape }), tiles }, isFlat, dtype)
    tensors.push([name, isVector ? vectorOf(tensor) : tensor])
  }
  return Object.fromEntries(tensors)
}

/** A dense matrix of one column as a vector: Matrix Market has no one-dimensional tensors. */
const vectorOf = (t: Tensor): Tensor =>
  t.kind === 'dense' && t.shape.length === 2 && t.shape[1] === 1 ? { ...t, shape: [t.shape[0]!] } : t

/** A list, or a set over the axes of the tensor that the format stores. */
function formatBinding(
  kernel: Kernel1,
  name: string,
  formatData: DeclaredInputs,
): Pick<Binding, 'kind' | 'dimensions'> {
  const data = formatData.get(name)
  const stored = data?.kind === 'set' && data.tensor !== null ? bindingIn(kernel, data.tensor) : null
  return data ? { kind: data.kind, dimensions: stored?.dimensions ?? [] } : bindingOf(kernel, name)
}

/**
 * True if a file with one dimension may serve several axes: as offsets of an axis, or as values at the positions of a bound
 * axis.
 */
const mayBeFlat = (kernel: Kernel1, name: string, files: ReadonlyMap<string, string>): boolean =>
  takesOffsets(kernel, name) || positionsOf(kernel, name, (a) => files.has(a)) !== null

/** Reads a file. `shape` covers all axes, so it is not checked for a dense tensor of fewer dimensions. */
async function readBound(
  path: string,
  options: ReadOptions,
  isFlat: boolean,
  dtype: Dtype | undefined,
): Promise<Tensor> {
  const { shape, ...withoutShape } = options
  if (shape && !isFlat)
    try {
      return await readTensorFor(path, dtype, options)
    } catch (e) {
      // The file has a shape of its own: binding reports which size differs, and by which tensor.
      if (!(e instanceof SptError && e.code === 'io/shape-mismatch')) throw e
    }
  const tensor = await readTensorFor(path, dtype, withoutShape)
  const hasAllAxes = tensor.kind !== 'dense' || tensor.shape.length === shape?.length
  return shape && isFlat && hasAllAxes ? readTensorFor(path, dtype, options) : tensor
}

/** Number of padding zeros in the blocks of each file; padding is not bound. */
export const paddingOf = (tensors: Readonly<Record<string, Tensor>>): Record<string, number> =>
  Object.fromEntries(
    Object.entries(tensors).flatMap(([name, t]) =>
      t.kind === 'coords' && t.padding !== undefined ? [[name, t.padding]] : [],
    ),
  )
