/** How long kernels take until data can be bound to them. */
import type { Built } from '../../src/api/built/built.ts'
import { emit, targetOf } from '../../src/backends/targets/index.ts'
import { textOptions } from '../../src/run/compile/compiled-program.ts'
import { lanesOf } from '../../src/run/compile/lowering-options.ts'
import type { Device } from '../../src/runtime/device.ts'

/** Milliseconds on the host's clock. */
export interface Preparation {
  readonly candidate: string
  /** The schedule that was chosen, where the candidate is a choice. */
  readonly chosen?: string
  readonly device: string
  /** Reading, parsing and elaborating the file, with what it imports. */
  readonly loading: number
  /** Choosing, schedule, lowering, launch passes. */
  readonly planning: number
  readonly emission: number
  /** NVRTC or the WebGPU driver, and loading the code. */
  readonly compilation: number
  /** Whether the images came from a cache on disk, so that nothing was compiled. */
  readonly cached: boolean
  readonly launches: number
  readonly resources: unknown
}

/** Notes when a device compiles, which is deep inside of what prepares a kernel. */
export class CompileClock {
  #from = 0
  #to = 0
  #running = false

  constructor(device: Device) {
    const compile = device.compile.bind(device)
    device.compile = async (text) => {
      if (!this.#running) this.#from = performance.now()
      this.#running = true
      try {
        return await compile(text)
      } finally {
        this.#to = performance.now()
      }
    }
  }

  start(): void {
    this.#running = false
    this.#from = this.#to = 0
  }

  /** From the first call since the start to the end of the last one: calls may overlap. */
  get milliseconds(): number {
    return this.#to - this.#from
  }
}

/** Of what took `total` to plan, emit and compile: emission is timed by doing it again. */
export function preparationOf(
  head: Pick<Preparation, 'candidate' | 'chosen' | 'loading'>,
  kernel: Built,
  total: number,
  compilation: number,
): Preparation {
  const { device, program } = kernel
  const modules = [...program.modules.values()]
  const start = performance.now()
  emit(kernel.compilation.planFor(lanesOf(device)), targetOf(device), textOptions(device))
  const emission = performance.now() - start
  return {
    ...head,
    device: device.kind,
    planning: Math.max(0, total - compilation - emission),
    emission,
    compilation,
    cached: modules.some((m) => 'cached' in m && m.cached === true),
    launches: program.plan.steps.length,
    resources: Object.assign({}, ...modules.map((m) => m.resources ?? {})),
  }
}
