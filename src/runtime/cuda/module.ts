/** A loaded module: handles and resources of its entries, checked against the limits of the chip. */
import { failAs, failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { CompiledModule, Entry, ModuleText } from '../device.ts'
import { checkTarget } from '../device-checks.ts'
import type { Chip } from './chip.ts'
import type { Image, KernelCompiler } from './compiler.ts'
import type { CudaContext } from './context.ts'
import { type CudaDriver, check, type Handle, invoke, obtain } from './driver.ts'
import { CUDA, CudaCallError, isSticky, showKernel } from './errors.ts'

/** Resources of an entry by their `CUfunction_attribute`: bytes, except `registers` (per thread) and `maxThreads` (per block). */
const RESOURCES = { registers: 4, shared: 1, local: 3, constant: 2, maxThreads: 0 } as const
type EntryResources = Readonly<Record<keyof typeof RESOURCES, number>>

const MAX_DYNAMIC_SHARED = 8
const LARGE_CLUSTERS = 14

export interface LoadedEntry {
  readonly entry: Entry
  readonly fn: Handle
  readonly displayName: string
}

export class CudaModule implements CompiledModule {
  readonly resources: Readonly<Record<string, EntryResources>>
  /** True if the image came from the disk cache. */
  readonly cached: boolean
  readonly entries: ReadonlyMap<string, LoadedEntry>
  readonly handle: Handle
  freed = false

  constructor(
    readonly owner: CudaContext,
    chip: Chip,
    readonly text: ModuleText,
    image: { readonly bytes: Uint8Array; readonly cached: boolean },
    private readonly unload: (module: CudaModule) => void,
  ) {
    this.cached = image.cached
    const { driver } = owner
    this.handle = obtain(driver, 'cuModuleLoadData', image.bytes)
    try {
      const entries = new Map<string, LoadedEntry>()
      const resources: Record<string, EntryResources> = {}
      for (const entry of text.entries) {
        const fn = findFunction(driver, this.handle, text.name, entry.name)
        const usage = readResources(driver, fn)
        prepare(driver, chip, entry, fn, usage)
        entries.set(entry.name, { entry, fn, displayName: showKernel(entry) })
        resources[entry.name] = usage
      }
      this.entries = entries
      this.resources = resources
    } catch (error) {
      driver.calls.cuModuleUnload(this.handle)
      throw error
    }
  }

  release(): void {
    if (!this.freed) this.unload(this)
  }
}

function findFunction(driver: CudaDriver, module: Handle, moduleName: string, name: string): Handle {
  const out = new BigUint64Array(1)
  const code = driver.calls.cuModuleGetFunction(out, module, name)
  if (code === CUDA.NOT_FOUND) {
    failWith('device/no-entry', `CUDA module '${moduleName}' defines no kernel '${name}'`, {
      expected: `extern "C" __global__ void ${name}(…)`,
    })
  }
  check(driver, 'cuModuleGetFunction', code)
  return out[0]!
}

function readResources(driver: CudaDriver, fn: Handle): EntryResources {
  const out = new Int32Array(1)
  const read = ([name, attribute]: [string, number]): [string, number] => {
    invoke(driver, 'cuFuncGetAttribute', out, attribute, fn)
    return [name, out[0]!]
  }
  return Object.fromEntries(Object.entries(RESOURCES).map(read)) as EntryResources
}

/** Checks that a block of this entry fits the chip, and raises its limit of dynamic shared memory if needed. */
function prepare(driver: CudaDriver, chip: Chip, entry: Entry, fn: Handle, usage: EntryResources): void {
  const threads = entry.block[0] * entry.block[1] * entry.block[2]
  const invalidDimension = entry.block.findIndex(
    (n, d) => !Number.isInteger(n) || n < 1 || n > chip.maxBlockDim[d]!,
  )
  if (threads > usage.maxThreads || invalidDimension >= 0) {
    const byRegisters = usage.maxThreads < chip.maxThreadsPerBlock && invalidDimension < 0
    failAs('device/over-limit', {
      message:
        `kernel ${showKernel(entry)}: a block of ${entry.block.join(' x ')} threads does not fit` +
        (byRegisters ? ` with ${usage.registers} registers a thread` : ''),
      expected: `at most ${usage.maxThreads} threads, ${chip.maxBlockDim.join(' x ')} by dimension`,
      hint: 'bind fewer threads, or split the loop that is bound',
    })
  }
  const shared = usage.shared + entry.sharedBytes
  if (shared > chip.sharedPerBlockOptin) {
    failAs('device/over-limit', {
      message:
        `kernel ${showKernel(entry)} needs ${shared} bytes of shared memory a block ` +
        `(${usage.shared} static, ${entry.sharedBytes} dynamic)`,
      expected: `at most ${chip.sharedPerBlockOptin} bytes`,
      hint: 'use smaller tiles',
    })
  }
  if (shared > chip.sharedPerBlock && entry.sharedBytes > 0)
    invoke(driver, 'cuFuncSetAttribute', fn, MAX_DYNAMIC_SHARED, entry.sharedBytes)
  if (entry.cluster) prepareCluster(driver, chip, entry, entry.cluster, fn)
}

/** Cluster size in blocks that every chip with clusters supports. */
const PORTABLE_CLUSTER = 8
const LARGEST_CLUSTER = 16

function prepareCluster(
  driver: CudaDriver,
  chip: Chip,
  entry: Entry,
  cluster: readonly [number, number, number],
  fn: Handle,
): void {
  const blocks = cluster[0] * cluster[1] * cluster[2]
  const isValid = cluster.every((n) => Number.isInteger(n) && n >= 1)
  if (!chip.clusters || !isValid || blocks > LARGEST_CLUSTER) {
    failAs('device/over-limit', {
      message: chip.clusters
        ? `kernel ${showKernel(entry)} requires clusters of ${cluster.join(' x ')} blocks`
        : `kernel ${showKernel(entry)} requires clusters of blocks, which ${chip.name} does not have`,
      expected: chip.clusters
        ? `at most ${LARGEST_CLUSTER} blocks, ${PORTABLE_CLUSTER} to be safe`
        : 'a GPU of compute capability 9.0 or later',
    })
  }
  if (blocks > PORTABLE_CLUSTER) invoke(driver, 'cuFuncSetAttribute', fn, LARGE_CLUSTERS, 1)
}

/** Modules of a device: compiled or read from the cache, and loaded until they are released. */
export class CudaModules {
  readonly #live = new Set<CudaModule>()

  constructor(
    private readonly context: CudaContext,
    private readonly chip: Chip,
    private readonly compiler: KernelCompiler,
  ) {}

  /** @throws SptError `device/compile`, and errors of the driver */
  async compile(module: ModuleText): Promise<CudaModule> {
    const action = `loading module '${module.name}'`
    this.context.inContext(action, () => {})
    const image = await this.compiler.image(module)
    try {
      return this.#load(module, image)
    } catch (error) {
      const isStale = image.cached && error instanceof CudaCallError && !isSticky(error.code)
      if (!isStale) throw this.context.translate(error, action)
      // The cached image is intact, but this driver rejects it, so the module is compiled again.
      const recompiled = await this.compiler.image(module, true)
      return this.context.inContext(action, () => this.#load(module, recompiled))
    }
  }

  #load(module: ModuleText, image: Image): CudaModule {
    this.context.enter(`loading module '${module.name}'`)
    const loaded = new CudaModule(this.context, this.chip, module, image, (m) => this.#unload(m))
    this.#live.add(loaded)
    return loaded
  }

  #unload(module: CudaModule): void {
    module.freed = true
    this.#live.delete(module)
    this.context.release(`releasing module '${module.text.name}'`, () =>
      this.context.call('cuModuleUnload', module.handle),
    )
  }

  /** Unloads all modules before the context is destroyed. */
  release(): void {
    for (const module of this.#live) {
      module.freed = true
      this.context.driver.calls.cuModuleUnload(module.handle)
    }
    this.#live.clear()
  }
}

/** Checks that a module is printed for CUDA, and that the chip supports its instructions. @throws SptError */
export function checkRequirements(module: ModuleText, chip: Pick<Chip, 'name' | 'major' | 'minor'>): void {
  checkTarget(module, 'cuda')
  const { needs, name } = module
  if (!needs || chip.major + chip.minor / 10 >= needs.version) return
  failAs('device/no-instruction', {
    message: `${needs.instr}, which ${name} uses, needs compute capability ${needs.version.toFixed(1)}, and ${chip.name} has ${chip.major}.${chip.minor}`,
    ...(needs.span && { span: needs.span }),
    expected: 'a device with the instruction, or another schedule',
  })
}
