/** Plans that were read from JSON, on a device. */

import { runSync } from '../../ast/work.ts'
import { readPlan } from '../../plan/read.ts'
import type { Plan } from '../../plan/schema.ts'
import { callerTensors } from '../../run/bind/bind-plan.ts'
import type { Bound } from '../../run/bind/index.ts'
import { withValues } from '../../run/bind/results/update-values.ts'
import { loadOn, type Program } from '../../run/compile/compiled-program.ts'
import { Turns } from '../../run/execution/call-queue.ts'
import { Executable } from '../../run/execution/execute.ts'
import type { Device } from '../../runtime/device.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { bindWithin, expectBuffer } from '../built/check-binding.ts'
import { checkDevice, expectName } from '../inputs/argument-checks.ts'
import { type RunInputs, updateOf } from '../inputs/bound-inputs.ts'
import type { Bindable } from '../inputs/tensors.ts'

/**
 * Loads a plan for a device: the JSON of `spt emit --target plan` or of `compiled.plan`, parsed. Needs no compiler.
 * ```ts
 * const fn = await loadPlan(JSON.parse(text), device)
 * const { C } = await fn.run({ tensors: { A, B } })
 * ```
 * Throws SptError `plan/…` if the plan is malformed, was changed, or is for another device; `device/compile`.
 */
export async function loadPlan(plan: Plan, device: Device): Promise<LoadedPlan> {
  checkDevice(device)
  return new LoadedPlan(plan, await loadOn(device, readPlan(plan)))
}

/** A plan that is compiled for a device. */
export class LoadedPlan {
  readonly plan: Plan
  readonly #program: Program

  constructor(plan: Plan, program: Program) {
    this.plan = plan
    this.#program = program
  }

  get device(): Device {
    return this.#program.device
  }

  /** Converts tensors to the formats of the plan, and uploads them. Throws SptError `bind/…`, `format/…`, `plan/…`, `device/…`. */
  async bind(inputs: RunInputs): Promise<BoundPlan> {
    const bound = runSync(bindWithin(this.#program, this.#program.plan.kernel, inputs))
    return new BoundPlan(await Executable.create(this.#program, bound))
  }

  /** Binds, runs, reads all outputs by name, and frees. */
  async run(inputs: RunInputs): Promise<Record<string, Tensor>> {
    const bound = await this.bind(inputs)
    try {
      await bound.run()
      return await bound.outputs()
    } finally {
      bound.free()
    }
  }

  /** Frees the compiled code. */
  release(): void {
    this.#program.release()
  }
}

/** A loaded plan with its data on a device. Calls take effect in their order, awaited or not. */
export class BoundPlan {
  readonly #executable: Executable
  readonly #turns = new Turns()

  constructor(executable: Executable) {
    this.#executable = executable
  }

  get #bound(): Bound {
    return this.#executable.bound
  }

  /** Runs all launches. Throws SptError `run/lost-writes`, `run/overflow`, `device/…`. */
  run(): Promise<void> {
    return this.#turns.take(() => this.#executable.run())
  }

  /** Sets new values of an input with the structure that was bound. Throws SptError as `prepared.write`. */
  async set(name: string, values: Bindable): Promise<void> {
    expectName('an input', name)
    const update = updateOf(this.#bound.kernel, name, values)
    return this.#turns.take(async () => {
      const written = withValues(this.#bound, name, update)
      await this.#executable.rebind(written.bound, written.buffers)
    })
  }

  /** Reads a tensor in the coordinates of the kernel. Throws SptError `api/unknown-buffer`. */
  async get(name: string): Promise<Tensor> {
    return this.#turns.take(async () => {
      const names = this.#names()
      if (!names.includes(name)) expectBuffer(this.#bound.kernel, name)
      return this.#executable.read(name)
    })
  }

  /** Reads all outputs, by name. */
  outputs(): Promise<Record<string, Tensor>> {
    return this.#turns.take(async () => {
      const out: [string, Tensor][] = []
      for (const name of this.#names(['out', 'inout'])) out.push([name, await this.#executable.read(name)])
      return Object.fromEntries(out)
    })
  }

  #names(roles: readonly string[] = ['in', 'out', 'inout', 'local']): readonly string[] {
    return callerTensors(this.#bound.kernel).flatMap((t) => (roles.includes(t.first.role) ? [t.name] : []))
  }

  /** Frees the memory. */
  free(): void {
    this.#executable.free()
  }
}
