/** Modules of a device: compiled, or taken from the cache where the driver still takes that, and loaded until they are released. */
import { fail } from '../../ast/diagnostic.ts'
import type { ModuleText } from '../device.ts'
import type { Chip } from './chip.ts'
import type { Image, KernelCompiler } from './compiler.ts'
import type { CudaContext } from './context.ts'
import { CudaCallError, isSticky } from './errors.ts'
import { CudaModule } from './module.ts'

export class CudaModules {
  /** Loaded ones. */
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
    const during = `loading module '${module.name}'`
    this.#context.within(during, () => {})
    const image = await this.#compiler.image(module)
    try {
      return this.#load(module, image)
    } catch (error) {
      const stale = image.cached && error instanceof CudaCallError && !isSticky(error.code)
      if (!stale) throw this.#context.translate(error, during)
      // What was cached is whole but not what this driver takes: compile anew, once.
      const fresh = await this.#compiler.image(module, true)
      return this.#context.within(during, () => this.#load(module, fresh))
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
    if (!this.#context.usable) return
    this.#context.within(`releasing module '${module.text.name}'`, () => {
      this.#context.drain()
      this.#context.check('cuModuleUnload', this.#context.driver.calls.cuModuleUnload(module.handle))
    })
  }

  /** All of them, with the context. */
  release(): void {
    for (const module of this.live) {
      module.released = true
      this.#context.driver.calls.cuModuleUnload(module.handle)
    }
    this.live.clear()
  }
}

/** A module is printed for CUDA, and its declared instructions are those of this chip. */
export function checkNeeds(
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
