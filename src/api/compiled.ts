/** A compiled kernel, and the same with data. */

import { fail } from '../ast/diagnostic.ts'
import { callerTensor } from '../bind/axes.ts'
import { type Bound, bindInputs, type TensorFormat } from '../bind/index.ts'
import { bindingOf } from '../bind/names.ts'
import { bindParams } from '../bind/sizes.ts'
import { type BareValues, withValues } from '../bind/write.ts'
import type { Compilation } from '../compile.ts'
import { checkFits, Executable, type Program } from '../execute.ts'
import type { Tensor, ValueArray } from '../formats/tensor.ts'
import { convert } from '../formats/values.ts'
import { arrayClass } from '../ir/arrays.ts'
import type { Dtype } from '../ir/dtype.ts'
import { evaluate } from '../ir/evaluate.ts'
import { freeVars } from '../ir/expr.ts'
import type { RefOptions } from '../ir/reference/index.ts'
import type { KernelGraph } from '../replay.ts'
import type { Command, Device } from '../runtime/device.ts'
import type { Measurement, MeasureOptions } from '../runtime/measure.ts'
import { type Verification, verify } from '../verify.ts'
import { checkTensor, coordinatesOf, expectArgument, isRecord, isTyped, numbersOf } from './check.ts'
import { type Bindable, dtypeOf } from './tensors.ts'

export interface RunInputs {
  /**
   * By name: tensors, axes (structure alone), lists and sets of formats; or ready-made arrays for the buffers of all
   * parts of a tensor.
   */
  readonly tensors?: Readonly<Record<string, Bindable>>
  /** Sizes and scalars by name. */
  readonly params?: Readonly<Record<string, number>>
  /** Random values for what is not bound. */
  readonly seed?: number
}

const isBound = (x: RunInputs | Bound): x is Bound => isRecord(x) && 'storages' in x

export class CompiledKernel {
  readonly compilation: Compilation
  readonly program: Program

  constructor(compilation: Compilation, program: Program) {
    this.compilation = compilation
    this.program = program
  }

  get device(): Device {
    return this.program.device
  }

  /** Binds data on the host: builds formats, checks everything. */
  bind(inputs: RunInputs): Bound {
    const { tensors, params, seed } = this.#inputs(inputs)
    this.#fits(tensors, params)
    return bindInputs(this.compilation.kernel, { tensors, params, ...(seed === undefined ? {} : { seed }) })
  }

  /**
   * Bytes that the buffers of these inputs take, as far as sizes alone tell. Makes no data.
   * @throws SptError `bind/…`, `plan/too-large`, `device/buffer-too-large`
   */
  estimate(inputs: RunInputs): number {
    const { tensors, params } = this.#inputs(inputs)
    return this.#fits(tensors, params)
  }

  #fits(tensors: Readonly<Record<string, Tensor>>, params: Readonly<Record<string, number>>): number {
    const known = bindParams(
      this.compilation.kernel,
      new Map(Object.entries(tensors)),
      new Map(Object.entries(params)),
    )
    return checkFits(this.program, known)
  }

  #inputs(inputs: RunInputs): {
    readonly tensors: Record<string, Tensor>
    readonly params: Readonly<Record<string, number>>
    readonly seed: number | undefined
  } {
    expectArgument(isRecord(inputs), 'what is bound', inputs, '{ tensors, params, seed }')
    const { params = {}, seed } = inputs
    expectArgument(isRecord(params), 'params', params, 'numbers by name')
    for (const [name, value] of Object.entries(params))
      expectArgument(typeof value === 'number', `the value of ${name}`, value, 'a number')
    expectArgument(
      seed === undefined || Number.isSafeInteger(seed),
      'the seed',
      seed,
      'an integer, or none for no random data',
    )
    const given = inputs.tensors ?? {}
    expectArgument(isRecord(given), 'tensors', given, 'tensors or values by name')
    const tensors: Record<string, Tensor> = {}
    const flat: [string, ValueArray | readonly number[]][] = []
    for (const [name, value] of Object.entries(given)) {
      if (!Array.isArray(value) && !isTyped(value)) {
        checkTensor(name, value)
        tensors[name] = value
      } else flat.push([name, value as ValueArray | readonly number[]])
    }
    for (const [name, values] of flat) tensors[name] = this.#shaped(name, values, tensors, params)
    return { tensors, params, seed }
  }

  /** Binds data and brings it to the device. */
  async prepare(inputs: RunInputs | Bound): Promise<PreparedKernel> {
    const bound = isBound(inputs) ? inputs : this.bind(inputs)
    return new PreparedKernel(this, await Executable.create(this.program, bound))
  }

  /** Runs once: prepares, runs, reads all outputs, frees. */
  async run(inputs: RunInputs): Promise<Record<string, Tensor>> {
    const prepared = await this.prepare(inputs)
    try {
      await prepared.run()
      return await prepared.outputs()
    } finally {
      prepared.free()
    }
  }

  release(): void {
    this.program.release()
  }

  /** Bare values take the shape that sizes and the other tensors give their buffer. */
  #shaped(
    name: string,
    values: ValueArray | readonly number[],
    tensors: Readonly<Record<string, Tensor>>,
    given: Readonly<Record<string, number>>,
  ): Tensor {
    const kernel = this.compilation.kernel
    const known = new Map(Object.entries(given))
    for (const [other, t] of Object.entries(tensors))
      bindingOf(kernel, other, t).dimensions.forEach(({ extent }, k) => {
        const size = t.shape[k]
        if (extent.kind === 'var' && size !== undefined) known.set(extent.name, size)
      })
    const array = Array.isArray(values) ? numbersOf(values, name) : (values as ValueArray)
    const { kind, dimensions } = bindingOf(kernel, name)
    if (kind === 'list' || kind === 'table') {
      const list = coordinatesOf(values, name)
      return { kind: 'dense', shape: [list.length], values: list, dtype: 'i32' }
    }
    const over = dimensions.map((d) => d.extent)
    const open = over.flatMap((e) => [...freeVars(e)].filter((v) => !known.has(v)))
    if (open.length > 1 || (open.length === 1 && over.filter((e) => freeVars(e).has(open[0]!)).length > 1))
      fail({
        code: 'bind/missing-size',
        message: `the shape of ${name} is open: ${[...new Set(open)].join(', ')} have no values`,
        expected: 'sizes, or tensors that give them',
        hint: `bind dense(shape, values), or give ${open[0]}`,
      })
    const rest = over
      .filter((e) => open.length === 0 || !freeVars(e).has(open[0]!))
      .reduce((n, e) => n * evaluate(e, known), 1)
    const shape = over.map((e) =>
      open.length === 1 && freeVars(e).has(open[0]!)
        ? rest === 0
          ? 0
          : Math.floor(array.length / rest)
        : evaluate(e, known),
    )
    const buffer = callerTensor(kernel, name)?.first
    const bits = array instanceof Uint16Array || array instanceof Int16Array
    const half = buffer?.dtype === 'f16' || buffer?.dtype === 'bf16'
    const dtype = bits && half ? buffer.dtype : dtypeOf(array)
    const isBool = buffer?.dtype === 'bool' && array instanceof Uint8Array
    return {
      kind: 'dense',
      shape,
      values: isBool
        ? array
        : dtype === buffer?.dtype
          ? array
          : buffer
            ? convert(array, dtype, buffer.dtype)
            : array,
      dtype: buffer?.dtype ?? dtype,
    }
  }
}

export class PreparedKernel {
  readonly kernel: CompiledKernel
  readonly executable: Executable

  constructor(kernel: CompiledKernel, executable: Executable) {
    this.kernel = kernel
    this.executable = executable
  }

  /** Which formats tensors were put into: their parts, padding, bytes, build time, and how they are known to be right. */
  get formats(): readonly TensorFormat[] {
    return this.executable.bound.report
  }

  /**
   * New values for an input, where its structure stays: those of the entries in the order in which they were bound,
   * or a tensor with some of the coordinates that were bound (the others get the fill). Parts stay as they are, also
   * where they were chosen by values.
   *
   * @throws SptError `bind/not-input`, `bind/absent-coordinate`, `bind/values-length`, `bind/shape`
   */
  async write(name: string, values: Bindable): Promise<void> {
    const { bound } = this.executable
    let update: Tensor | BareValues
    if (Array.isArray(values) || isTyped(values)) {
      const array = Array.isArray(values) ? numbersOf(values, name) : (values as ValueArray)
      update = { values: array, dtype: this.#elementOf(name, array) }
    } else {
      checkTensor(name, values)
      update = values
    }
    const written = withValues(bound, name, update)
    await this.executable.rebind(written.bound, written.buffers)
  }

  /** 16 bits and bytes are of the buffer's type where that has such elements. */
  #elementOf(name: string, array: ValueArray): Dtype {
    const dtype = callerTensor(this.executable.bound.kernel, name)?.first.dtype
    return dtype !== undefined && array instanceof arrayClass(dtype) ? dtype : dtypeOf(array)
  }

  /** Runs all launches; resolves when they have finished. */
  run(): Promise<void> {
    return this.executable.run()
  }

  /**
   * All launches recorded once, to be replayed with one call: with other values by `write`, beside other work on a
   * stream.
   */
  graph(): Promise<KernelGraph> {
    return this.executable.graph()
  }

  /** What `run` runs, for a graph of several kernels: `device.graph([...a.commands, ...b.commands])`. */
  get commands(): readonly Command[] {
    return this.executable.commands
  }

  /** Times of a run as benchmarks want them: warm, with flushed caches, or the mean of many in a graph. */
  measure(options: MeasureOptions = {}): Promise<Measurement> {
    return this.executable.measure(options)
  }

  /** Milliseconds of each of `repeats` runs, by device events where there are any. */
  async time(repeats: number): Promise<number[]> {
    expectArgument(Number.isInteger(repeats) && repeats >= 1, 'repeats', repeats, 'an integer from 1 on')
    return this.executable.time(repeats)
  }

  /** An output, in the coordinates of the kernel as written. */
  async read(name: string): Promise<Tensor> {
    const candidates = this.kernel.compilation.source.buffers.map((b) => b.name)
    if (!candidates.includes(name))
      return fail({
        code: 'api/unknown-buffer',
        message: `kernel ${this.kernel.compilation.source.name} has no buffer ${name}`,
        lookup: { name: String(name), candidates },
        expected: `one of ${candidates.join(', ')}`,
      })
    return this.executable.read(name)
  }

  async outputs(): Promise<Record<string, Tensor>> {
    const out: Record<string, Tensor> = {}
    for (const b of this.kernel.compilation.source.buffers)
      if (b.role === 'out' || b.role === 'inout') out[b.name] = await this.read(b.name)
    return out
  }

  /**
   * Runs on poisoned memory and compares every output with the reference; with `sample`, a random sample of the
   * coordinates of one axis where each can be computed by itself.
   */
  verify(options: RefOptions = {}): Promise<Verification> {
    return verify(this.kernel.compilation.source, this.executable, options)
  }

  free(): void {
    this.executable.free()
  }
}
