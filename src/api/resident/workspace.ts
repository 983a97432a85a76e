/** One set of inputs on a device for many schedules of a kernel, with shared conversions, uploads and reference results. */

import { byName } from '../../ast/by-name.ts'
import { failAs, withSources } from '../../ast/diagnostics/diagnostic.ts'
import { AllocationLimit, withAllocationLimit } from '../../columns/allocate.ts'
import { maxMeasuredElements } from '../../cost-model/matrix/structure.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import type { PlanBuffer } from '../../plan/schema.ts'
import type { RefInputs, RefOptions, RefOutputs } from '../../reference/index.ts'
import { type Bound, bindInputs, type Inputs } from '../../run/bind/index.ts'
import { expectedOf, referenceInputs } from '../../run/bind/results/reference-inputs.ts'
import { formatKey } from '../../run/compile/compiled-program.ts'
import type { Sources } from '../../run/compile/program.ts'
import { byteLength } from '../../run/execution/buffer-layout.ts'
import { reportedBuffers } from '../../run/execution/launch-commands.ts'
import { precisionOf, type Verification } from '../../run/verify/verify.ts'
import type { Device, DeviceBuffer } from '../../runtime/device.ts'
import { DISPOSE } from '../../runtime/dispose.ts'
import { toDevice } from '../../runtime/webgpu/widened-elements.ts'
import type { ValueArray } from '../../storage/tensor.ts'
import { type Binding, createBinding } from '../built/binding.ts'
import type { Built } from '../built/built.ts'
import { checkVerify } from '../built/check-binding.ts'
import { checkDevice } from '../inputs/argument-checks.ts'
import { type Inputs as FlatInputs, flatInputs, namedInputs } from '../inputs/flat-inputs.ts'
import { besideDeclared, formatInputsFor, SplitInputs, withBeside } from '../inputs/format-input-binding.ts'
import { withRandom } from '../inputs/random-inputs.ts'
import type { Bindable } from '../inputs/tensors.ts'
import { expectKernel, type Kernel } from '../kernels/kernel.ts'
import { ErrorSources } from '../programs/error-sources.ts'
import { checkedOptions, type WorkspaceOptions, WorkspaceResidents } from './workspace-residents.ts'

export type { WorkspaceOptions } from './workspace-residents.ts'

/** Device memory, and the number of bindings that use it. */
interface Shared {
  readonly memory: DeviceBuffer
  users: number
}

/**
 * Inputs for several schedules of a kernel. Each tensor is converted once per format, dense tensors are uploaded once,
 * random tensors are identical for all schedules, and the reference runs once.
 * ```ts
 * const data = new Workspace(device, program.kernel('product'), { A, d: 32 }, { seed: 1 })
 * for (const kernel of candidates) {
 *   const prepared = await data.bind(await kernel.build(device, { auto: false }))
 *   …
 *   prepared.free()
 * }
 * ```
 * Bind the lists and sets of all formats together: each schedule takes those of its formats. Kernels of a workspace reject
 * `set` (`run/shared`).
 */
export class Workspace extends ErrorSources {
  readonly device: Device
  readonly sources: Sources
  readonly #source: Kernel1
  readonly #split: SplitInputs
  readonly #options: ReturnType<typeof checkedOptions>
  readonly #residents: WorkspaceResidents
  #whole: { readonly bound: Bound; readonly inputs: Inputs } | undefined
  /** Bound data by format, the most recently used last. */
  readonly #bounds = new Map<string, Bound>()
  /** Uploaded memory by host array, and by element type and size on the device. */
  readonly #uploaded = new Map<ValueArray, Map<string, Shared>>()
  readonly #outputs = new Map<string, Shared>()
  readonly #expected = new Map<string, RefOutputs>()

  /** Creates a workspace. @throws SptError `api/argument`, `tensor/…`, `bind/missing-size` */
  constructor(device: Device, kernel: Kernel, inputs: FlatInputs, options: WorkspaceOptions = {}) {
    super()
    checkDevice(device)
    expectKernel(kernel)
    this.device = device
    this.#options = checkedOptions(device, options)
    this.#residents = new WorkspaceResidents(device, this.#options.deviceConversionThreshold)
    this.#source = kernel.source
    this.sources = kernel.sources
    const bound = namedInputs('Workspace', inputs, { seed: options.seed })
    this.#split = withSources(this, () => new SplitInputs(this.#source, bound, kernel.allFormatInputs))
  }

  /** Bytes on the device that bindings share. */
  get bytes(): number {
    const shared = [
      ...this.#outputs.values(),
      ...[...this.#uploaded.values()].flatMap((m) => [...m.values()]),
    ]
    return shared.reduce((n, s) => n + s.memory.bytes, 0)
  }

  /** Bound inputs, including generated random tensors. @throws SptError as `bindInputs` */
  get inputs(): Inputs {
    const { inputs } = this.#all()
    const beside = besideDeclared(this.#source, this.#split.beside, this.#split.used)
    return { ...inputs, tensors: byName(Object.entries({ ...inputs.tensors, ...beside })) }
  }

  /** @internal The unscheduled kernel, and its sizes with the numbers of entries. @throws SptError as `bindInputs` */
  get problemSize(): { readonly kernel: Kernel1; readonly params: ReadonlyMap<string, number> } {
    return { kernel: this.#source, params: this.#all().bound.params }
  }

  #all(): { readonly bound: Bound; readonly inputs: Inputs } {
    const { own } = this.#split
    this.#whole ??= withRandom(bindInputs(this.#source, own), own)
    return this.#whole
  }

  /**
   * @internal Binds the inputs in the formats of a compiled kernel, on the host.
   * @throws SptError `run/other-kernel`, `run/other-device`, `bind/too-many-elements`, and as `Built.bind`
   */
  bindOnHost(compiled: Pick<Built, 'compilation' | 'device'>): Bound {
    this.#check(compiled)
    const { compilation } = compiled
    const { kernel } = compilation
    const { bound, inputs } = this.#all()
    const key = formatKey(compilation)
    if (key === '') return bound
    const known = this.#bounds.get(key)
    const made =
      known ?? this.#bounded(() => bindInputs(kernel, withBeside(kernel, inputs, this.#besideOf(kernel))))
    this.#bounds.delete(key)
    this.#bounds.set(key, made)
    if (!known) this.#forget(made)
    return made
  }

  /** Returns the lists and sets that a kernel takes. Throws SptError `bind/unknown-name` for a value that no known format takes. */
  #besideOf(kernel: Kernel1): Readonly<Record<string, Bindable>> {
    if (this.#split.learn(kernel)) this.#whole = undefined
    return formatInputsFor(kernel, this.#split.beside, this.#split.used)
  }

  #bounded<T>(f: () => T): T {
    if (!this.#options.limitExpansion) return f()
    return withAllocationLimit(
      new AllocationLimit(maxMeasuredElements(Object.values(this.#split.own.tensors ?? {}))),
      f,
    )
  }

  #check({ compilation, device }: Pick<Built, 'compilation' | 'device'>): void {
    if (compilation.source !== this.#source)
      failAs('run/other-kernel', {
        message: `the workspace was made for kernel ${this.#source.name}, and this is another one: ${compilation.source.name}`,
        expected: 'a schedule of the kernel that the workspace was made for',
        hint: 'load the program once: each load returns new kernels',
      })
    if (device !== this.device)
      failAs('run/other-device', {
        message: `the workspace has memory of ${this.device.kind}, and kernel ${this.#source.name} was compiled for another device: ${device.kind}`,
        expected: 'a kernel that was compiled for the device that the workspace was made for',
        hint: 'build the kernel with workspace.device',
      })
    this.#besideOf(compilation.kernel)
  }

  /** Evicts the least recently used data, except `latest`, beyond the cache limit. */
  #forget(latest: Bound): void {
    const dense = new Set<unknown>(this.#all().bound.arrays.values())
    const size = (b: Bound): number =>
      [...b.arrays.values()].reduce((n, a) => n + (dense.has(a) ? 0 : a.byteLength), 0)
    let total = [...this.#bounds.values()].reduce((n, b) => n + size(b), 0)
    for (const [key, b] of this.#bounds) {
      if (total <= this.#options.hostCacheBytes || b === latest) return
      this.#bounds.delete(key)
      total -= size(b)
    }
  }

  /** Binds, and uploads arrays that are not on the device yet. @throws SptError as `bind` and `Built.bind` */
  async bind(given: Built): Promise<Binding> {
    this.#check(given)
    const { code: compiled } = await given.choose(...flatInputs(this.#all().inputs))
    const { program, compilation } = compiled
    const { kernel } = compilation
    const there = await this.#residents.of({ whole: this.#all(), kernel, key: formatKey(compilation) })
    const used: Shared[] = []
    let open = true
    const release = (): void => {
      if (open) for (const s of used) this.#drop(s)
      there?.release()
      open = false
    }
    try {
      const bound = there?.bound ?? this.bindOnHost(compiled)
      const buffers = new Map<string, DeviceBuffer>()
      const packed = new Set(program.plan.packed.map((p) => p.in))
      const outputs = new Map<string, number>()
      const reported = reportedBuffers(program.plan)
      for (const b of program.plan.buffers) {
        // Outcomes are private, because another kernel may run before they are checked.
        if (packed.has(b.name) || reported.has(b.name) || there?.resident.buffers.has(b.name)) continue
        const memory = await this.#memoryOf(b, bound, outputs, used)
        if (memory) buffers.set(b.name, memory)
      }
      const origin = { shared: { buffers, release }, ...(there && { resident: there.resident }) }
      return await createBinding(compiled, bound, null, origin)
    } catch (error) {
      release()
      throw error
    }
  }

  /**
   * Returns shared memory for a buffer; undefined if it is private. `outputs`: number of outputs so far by size. `used` collects the
   * memory.
   */
  async #memoryOf(
    b: PlanBuffer,
    bound: Bound,
    outputs: Map<string, number>,
    used: Shared[],
  ): Promise<DeviceBuffer | undefined> {
    const take = (from: Map<string, Shared>, key: string): DeviceBuffer => {
      const known = getOrAdd(from, key, () => ({ memory: this.device.alloc(bytes, b.name), users: 0 }))
      known.users++
      used.push(known)
      return known.memory
    }
    const bytes = byteLength(this.device, b, bound)
    if (b.role === 'out' || b.role === 'local') {
      if (!this.#options.shareOutputs) return undefined
      // Outputs of one kernel of equal size need separate memory.
      const number = outputs.get(`${bytes}`) ?? 0
      outputs.set(`${bytes}`, number + 1)
      return take(this.#outputs, `${bytes} ${number}`)
    }
    const array = b.role === 'in' || b.role === 'index' ? bound.arrays.get(b.name) : undefined
    if (!array) return undefined
    const ways = getOrAdd(this.#uploaded, array, () => new Map<string, Shared>())
    const key = `${b.dtype} ${bytes}`
    const there = ways.has(key)
    const memory = take(ways, key)
    if (!there && array.length > 0) await this.device.upload(memory, toDevice(this.device, b.dtype, array))
    return memory
  }

  #drop(shared: Shared): void {
    if (--shared.users > 0) return
    shared.memory.free()
    for (const [array, ways] of this.#uploaded) {
      for (const [key, s] of ways) if (s === shared) ways.delete(key)
      if (ways.size === 0) this.#uploaded.delete(array)
    }
    for (const [key, s] of this.#outputs) if (s === shared) this.#outputs.delete(key)
  }

  /** Frees device memory that no binding uses; it is allocated again on demand. */
  free(): void {
    this.#residents.free()
  }

  [DISPOSE](): void {
    this.free()
  }

  /** Results of the reference for these inputs, computed once for each value of `options`. @throws SptError `reference/…` */
  referenceResults(options: RefOptions = {}): RefOutputs {
    return getOrAdd(this.#expected, JSON.stringify(options), () =>
      expectedOf(this.#source, this.#all().bound, options),
    )
  }

  /** Inputs of the reference, so that another thread can compute `referenceResults`; see `adoptReferenceResults`. */
  get referenceInputs(): RefInputs {
    return referenceInputs(this.#source, this.#all().bound)
  }

  /** Stores results that another thread computed from `referenceInputs`, for `referenceResults`. */
  adoptReferenceResults(options: RefOptions, computed: RefOutputs): void {
    this.#expected.set(JSON.stringify(options), computed)
  }

  /** Verifies a binding like `Binding.verify`, with the shared `referenceResults`. */
  async verify(prepared: Binding, options: RefOptions = {}): Promise<Verification> {
    checkVerify(options)
    return prepared.verifyAgainst(
      this.referenceResults({ ...options, ...precisionOf(prepared.executable.program.plan) }),
    )
  }
}
