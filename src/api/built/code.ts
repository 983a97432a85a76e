/** A kernel compiled for a device under a schedule. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import { loadOn, type Program, type Sources } from '../../run/compile/program.ts'
import type { UnorderedSum } from '../../run/verify/unordered-sums.ts'
import type { Device } from '../../runtime/device.ts'

/** Compiles the same schedule for another device. */
type Recompile = (device: Device) => Promise<CompiledCode>

export class CompiledCode {
  /** Generated code and modules. */
  readonly program: Program
  readonly #compilation: Compilation | null

  readonly #recompile: Recompile | null

  /** `compilation`: stages and plan. Both are `null` for a plan that was loaded. */
  constructor(compilation: Compilation | null, program: Program, recompile: Recompile | null = null) {
    this.#compilation = compilation
    this.#recompile = recompile
    this.program = program
  }

  /** Throws SptError `plan/no-kernel` for a plan that was loaded. */
  get compilation(): Compilation {
    return (
      this.#compilation ??
      failWith('plan/no-kernel', `the plan of ${this.name} was loaded without its kernel`, {
        expected: 'a kernel that was built from its program',
        hint: `(await load(…)).kernel('${this.name}').build(device)`,
      })
    )
  }

  /** The kernel without steps; of a plan, the kernel in its formats. */
  get source(): Kernel1 {
    return this.#compilation?.source ?? this.program.plan.binding
  }

  get name(): string {
    return this.program.plan.kernel
  }

  get device(): Device {
    return this.program.device
  }

  get sources(): Sources {
    return this.program.sources
  }

  /** Floating-point sums by atomic updates, whose order varies, so that the last bits of results may differ from run to run. */
  get unorderedSums(): readonly UnorderedSum[] {
    return this.program.plan.unorderedSums ?? []
  }

  /** Compiles the same schedule for another device. */
  async compileFor(device: Device): Promise<CompiledCode> {
    return this.#recompile?.(device) ?? new CompiledCode(null, await loadOn(device, this.program.plan))
  }

  release(): void {
    this.program.release()
  }
}
