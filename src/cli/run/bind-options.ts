/** `--bind`, `--size` and `--out`, checked by name before any file is read. */

import { declaredOf } from '../../api/bound-values.ts'
import { bindingAmong, checkBound, takenBy, type Used } from '../../api/format-data.ts'
import type { Kernel } from '../../api/kernel.ts'
import { fail, orRefused, SptError } from '../../ast/diagnostic.ts'
import { type ReadOptions, readTensor, readTensorFor, WRITABLE } from '../../io/index.ts'
import type { Dtype } from '../../ir/dtype.ts'
import { evaluate } from '../../ir/evaluate.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import type { Kernel1 } from '../../ir/stage1.ts'
import { type Binding, bindingIn, bindingOf } from '../../run/bind/binding-names.ts'
import { positionsOf, takesOffsets } from '../../run/bind/bound-offsets.ts'
import { callerTensor, callerTensors } from '../../run/bind/caller-tensors.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { type Call, NUMBER } from '../command.ts'
import { checkWritable } from '../paths.ts'
import { misused } from '../usage.ts'

const WORDS: Readonly<Record<string, number>> = {
  inf: Number.POSITIVE_INFINITY,
  infinity: Number.POSITIVE_INFINITY,
  '-inf': Number.NEGATIVE_INFINITY,
  '-infinity': Number.NEGATIVE_INFINITY,
  nan: Number.NaN,
  true: 1,
  false: 0,
}

/** `--size` as numbers, by names without blanks: `covered(W,tile_wise(128,64))` is one statistic, however it is spaced. */
export function numbers(call: Call): Map<string, number> {
  const out = new Map<string, number>()
  for (const [name, text] of call.pairs('size', 'N')) {
    const key = name.replace(/\s+/g, '')
    if (out.has(key))
      misused({ command: call.command, message: `--size ${name} is given twice`, expected: 'one value' })
    out.set(key, numberOf(call, name, text))
  }
  return out
}

/** A value of `--size`. */
export function numberOf(call: Call, name: string, text: string): number {
  const word = text.trim().toLowerCase()
  const value = NUMBER.test(word) ? Number(word) : Object.hasOwn(WORDS, word) ? WORDS[word] : undefined
  return (
    value ??
    misused({
      command: call.command,
      message: `--size ${name}=${text} is not a number`,
      expected: `--size ${name}=N`,
    })
  )
}

/** Files bound by name, and the seed of random data. */
export interface BindOptions {
  readonly files: ReadonlyMap<string, string>
  readonly seed: number
}

/** `--bind` and `--seed`. */
export const given = (call: Call): BindOptions => ({ files: call.pairs('bind', 'PATH'), seed: seedOf(call) })

/** `--seed`. */
export const seedOf = (call: Call): number => call.integer('seed', 0, 2 ** 32 - 1) ?? 0

/** `used`: lists and sets that formats of schedules to come take. Throws `bind/unknown-name`, `bind/unknown-size`. */
export function checkNames(
  kernel: Kernel1,
  bound: Iterable<string>,
  sizes: Iterable<string>,
  used: Used = new Map(),
): void {
  checkBound(kernel, bound, used)
  const candidates = kernel.params.filter((p) => !p.measured).map((p) => p.name)
  for (const name of sizes)
    if (!candidates.includes(name))
      fail({
        code: 'bind/unknown-size',
        message: `kernel ${kernel.name} has no size or scalar ${name}`,
        lookup: { name, candidates },
      })
}

/**
 * The files that are read before a schedule is chosen by data, as it is for `kernel`: those of what its text declares. The
 * formats of a schedule tell of lists, sets and parts. Throws `bind/unknown-name` of what none takes.
 */
export function early(
  kernel: Kernel,
  files: ReadonlyMap<string, string>,
  used: Used,
): ReadonlyMap<string, string> {
  const declared = new Map(Object.entries(declaredOf(kernel.source, Object.fromEntries(files), used)))
  for (const name of files.keys())
    if (!declared.has(name) && !used.has(name) && kernel.schedules.every((s) => isUnknownTo(kernel, s, name)))
      checkBound(kernel.source, [name], used)
  return declared
}

/** Adds to errors about unknown names the schedules whose formats take them. */
export async function tellingSchedules<T>(kernel: Kernel, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof SptError)) throw error
    const told = error.diagnostics.map((d) => {
      const name = d.code === 'bind/unknown-name' ? d.lookup?.name : undefined
      const by = name === undefined ? [] : kernel.schedules.filter((s) => !isUnknownTo(kernel, s, name))
      return by.length === 0
        ? d
        : { ...d, expected: `${d.expected}; or a schedule that takes ${name}: --schedule ${by.join(', ')}` }
    })
    const { sources } = error
    throw Object.assign(new SptError(told), { sources })
  }
}

/** Parts of formats too. What depends on arguments is not known: 1 is one that most take. */
function isUnknownTo(kernel: Kernel, schedule: string, name: string): boolean {
  const args = kernel.parameters(schedule).map((p) => (p.required ? 1 : undefined))
  return orRefused(() => bindingIn(kernel.schedule(schedule, ...args).compilation.kernel, name)) === null
}

/** The others that the kernel under its schedule takes, which may be none of those of other schedules. Throws as `checkNames`. */
export async function readLate(
  kernel: Kernel1,
  files: ReadonlyMap<string, string>,
  known: Readonly<Record<string, Tensor>>,
  sizes: ReadonlyMap<string, number>,
  used: Used,
): Promise<Record<string, Tensor>> {
  const rest = new Map([...files].filter(([name]) => !Object.hasOwn(known, name)))
  const taken = new Map(Object.entries(takenBy(kernel, Object.fromEntries(rest), used)))
  return { ...known, ...(await readInputs(kernel, taken, sizes)) }
}

/** Throws `run/unknown-output`, and `io/…` where the file could not be written once the kernel has run. */
export async function checkOutputs(kernel: Kernel1, outs: ReadonlyMap<string, string>): Promise<void> {
  // Those of several parts under their own names.
  const candidates = callerTensors(kernel)
    .filter(({ first: { role } }) => role === 'out' || role === 'inout')
    .map((t) => t.name)
  for (const [name, path] of outs) {
    if (!candidates.includes(name))
      fail({
        code: 'run/unknown-output',
        message: `kernel ${kernel.name} has no output ${name}`,
        lookup: { name, candidates },
        expected: candidates.join(', '),
        hint: '--out takes buffers with the role out or inout',
      })
    if (!WRITABLE.some((e) => path.toLowerCase().endsWith(e)))
      fail({
        code: 'io/unknown-extension',
        message: `cannot tell from '${path}' what kind of file to write`,
        expected: WRITABLE.join(' '),
      })
    await checkWritable(path)
  }
}

/**
 * Reads the bound files. Files without a shape (edge lists, coordinate arrays) get it from `--size`. `used`: as for
 * `checkNames`.
 */
export async function readInputs(
  kernel: Kernel1,
  files: ReadonlyMap<string, string>,
  sizes: ReadonlyMap<string, number>,
  used: Used = new Map(),
): Promise<Record<string, Tensor>> {
  const tensors: [string, Tensor][] = []
  for (const [name, path] of files) {
    const { kind, dimensions } = bindingAmong(kernel, name, used) ?? ofFormat(kernel, name, used)
    if (kind === 'list' || kind === 'table') {
      tensors.push([name, await readTensor(path, { dtype: 'i32' })])
      continue
    }
    const extents = dimensions.map((d) => d.extent)
    const known = extents.length > 0 && extents.every((e) => [...freeVars(e)].every((v) => sizes.has(v)))
    const shape = known ? extents.map((e) => evaluate(e, sizes)) : undefined
    const valid = shape?.every((n) => Number.isInteger(n) && n >= 0)
    // Sets have what is in tiles: what is beside them is no part of these.
    const tiles = kind === 'set'
    const isVector = dimensions.length === 1
    const inLine = isVector || inOneLine(kernel, name, files)
    const dtype = callerTensor(kernel, name)?.first.dtype
    const tensor = await readBound(path, { ...(valid && { shape }), tiles }, inLine, dtype)
    tensors.push([name, isVector ? vectorOf(tensor) : tensor])
  }
  return Object.fromEntries(tensors)
}

/** A dense matrix of one column as a vector: Matrix Market has no one-dimensional tensors. */
const vectorOf = (t: Tensor): Tensor =>
  t.kind === 'dense' && t.shape.length === 2 && t.shape[1] === 1 ? { ...t, shape: [t.shape[0]!] } : t

/** A list, or a set over the axes of the tensor that the format stores. */
function ofFormat(kernel: Kernel1, name: string, used: Used): Pick<Binding, 'kind' | 'dimensions'> {
  const of = used.get(name)
  const stored = of?.kind === 'set' && of.tensor !== null ? bindingIn(kernel, of.tensor) : null
  return of ? { kind: of.kind, dimensions: stored?.dimensions ?? [] } : bindingOf(kernel, name)
}

/**
 * True if a file with one dimension may serve several axes: as offsets of an axis, or as values at the positions of a bound
 * axis.
 */
const inOneLine = (kernel: Kernel1, name: string, files: ReadonlyMap<string, string>): boolean =>
  takesOffsets(kernel, name) || positionsOf(kernel, name, (a) => files.has(a)) !== null

/** `shape` is that of all axes: a dense tensor of fewer dimensions is not held against it. */
async function readBound(
  path: string,
  options: ReadOptions,
  inLine: boolean,
  dtype: Dtype | undefined,
): Promise<Tensor> {
  const { shape, ...rest } = options
  if (shape && !inLine)
    try {
      return await readTensorFor(path, dtype, options)
    } catch (e) {
      // A file that has its own shape: binding reports which size differs, and by which tensor.
      if (!(e instanceof SptError && e.diagnostics[0]?.code === 'io/shape-mismatch')) throw e
    }
  const tensor = await readTensorFor(path, dtype, rest)
  const isWhole = tensor.kind !== 'dense' || tensor.shape.length === shape?.length
  return shape && inLine && isWhole ? readTensorFor(path, dtype, options) : tensor
}

/** Number of padding zeros in the blocks of each file; they are not bound. */
export const paddingOf = (tensors: Readonly<Record<string, Tensor>>): Record<string, number> =>
  Object.fromEntries(
    Object.entries(tensors).flatMap(([name, t]) =>
      t.kind === 'coords' && t.padding !== undefined ? [[name, t.padding]] : [],
    ),
  )
