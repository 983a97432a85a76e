/** Modules of a device: compiled or read from the cache, and loaded until they are released. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type { ModuleText } from '../device.ts'
import type { Chip } from './chip.ts'
import type { Image, KernelCompiler } from './compiler.ts'
import type { CudaContext } from './context.ts'
import { CudaCallError, isSticky } from './errors.ts'
import { CudaModule } from './module.ts'

export class CudaModules {
  /** Loaded modules. */
  readonly live = new Set<CudaModule>()
  readonly #context: CudaContext
  readonly #chip: Chip
  readonly #compiler: KernelCompiler

  constructor(context: CudaContext, chip: Chip, compiler: KernelCompiler) {
    this.#context = context
    this.#chip = chip
    this.#compiler = compiler
  }

  /** @throws SptError `device/compile`, and errors of the driver */
  async compile(module: ModuleText): Promise<CudaModule> {
    const action = `loading module '${module.name}'`
    this.#context.inContext(action, () => {})
    const image = await this.#compiler.image(module)
    try {
      return this.#load(module, image)
    } catch (error) {
      const isStale = image.cached && error instanceof CudaCallError && !isSticky(error.code)
      if (!isStale) throw this.#context.translate(error, action)
      // The cached image is intact, but this driver rejects it, so the module is compiled again.
      const recompiled = await this.#compiler.image(module, true)
      return this.#context.inContext(action, () => this.#load(module, recompiled))
    }
  }

  #load(module: ModuleText, image: Image): CudaModule {
    this.#context.enter()
    const { driver } = this.#context
    const loaded = new CudaModule(driver, this.#chip, module, image, (m) => this.#unload(m))
    this.live.add(loaded)
    return loaded
  }

  #unload(module: CudaModule): void {
    module.released = true
    this.live.delete(module)
    if (!this.#context.isUsable) return
    this.#context.inContext(`releasing module '${module.text.name}'`, () => {
      this.#context.drain()
      this.#context.check('cuModuleUnload', this.#context.driver.calls.cuModuleUnload(module.handle))
    })
  }

  /** Unloads all modules before the context is destroyed. */
  release(): void {
    for (const module of this.live) {
      module.released = true
      this.#context.driver.calls.cuModuleUnload(module.handle)
    }
    this.live.clear()
  }
}

/** Checks that a module is printed for CUDA, and that the chip supports its instructions. @throws SptError */
export function checkRequirements(
  { needs, name, target }: ModuleText,
  chip: Pick<Chip, 'name' | 'major' | 'minor'>,
): void {
  if (target !== 'cuda')
    fail({
      code: 'device/target',
      message: `module '${name}' is printed for ${target}`,
      expected: 'a module printed for cuda',
    })
  if (!needs || chip.major + chip.minor / 10 >= needs.version) return
  fail({
    code: 'device/no-instruction',
    message: `${needs.instr}, which ${name} uses, needs compute capability ${needs.version.toFixed(1)}, and ${chip.name} has ${chip.major}.${chip.minor}`,
    ...(needs.span ? { span: needs.span } : {}),
    expected: 'a device with the instruction, or another schedule',
  })
}
