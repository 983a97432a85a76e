/** Execution on the CPU: the plan's functions over typed arrays, without `new Function`. */
import { arrayClass, type TypedArray } from '../ir/values/arrays.ts'
import { blocksOf } from '../plan/interpret.ts'
import type { Plan } from '../plan/schema.ts'
import { elementsOf } from './inputs.ts'
import type { Executor } from './memory.ts'
import { failWith } from './plan-error.ts'

/** Entry points of the plan's modules, by name. */
export type Functions = Readonly<Record<string, (...args: (TypedArray | number | boolean)[]) => void>>

/** Imports the texts of a plan as modules, which a page's content security policy can forbid. @throws PlanError `device/compile` */
async function importModules(plan: Plan): Promise<Functions> {
  const found: Record<string, Functions[string]> = {}
  for (const { name, text } of plan.modules)
    try {
      const url = `data:text/javascript,${encodeURIComponent(text)}`
      Object.assign(found, await import(/* webpackIgnore: true */ /* @vite-ignore */ url))
    } catch (e) {
      failWith(
        'device/compile',
        `module ${name}: ${(e as Error).message}`,
        'option functions: entries by name',
      )
    }
  return found
}

export async function cpuExecutor(plan: Plan, given: Functions | undefined): Promise<Executor> {
  const functions = given ?? (await importModules(plan))
  for (const step of plan.steps)
    if ('launch' in step && typeof functions[step.launch] !== 'function')
      failWith('device/unknown-entry', `no function ${step.launch}`)
  return async ({ sizes, arrays }) => {
    const memory = new Map<string, TypedArray>()
    for (const b of plan.buffers) {
      const length = elementsOf(b, sizes)
      try {
        memory.set(b.name, new (arrayClass(b.dtype))(length))
      } catch {
        failWith('device/out-of-memory', `no device memory for ${b.name}`)
      }
    }
    const write = (name: string, values: TypedArray): void => memory.get(name)!.set(values)
    for (const [name, values] of arrays) write(name, values)
    return {
      write: ({ name }, values) => write(name, values),
      read: async ({ name }) => memory.get(name)!.slice(),
      free: () => memory.clear(),
      async run() {
        for (const step of plan.steps)
          if ('clear' in step) memory.get(step.clear)!.fill(0)
          else if (blocksOf(step, sizes))
            functions[step.launch]!(
              ...step.args.map((a) => {
                if ('buffer' in a) return memory.get(a.buffer)!
                const value = 'scalar' in a ? sizes.get(a.scalar)! : 0
                return a.dtype === 'bool' ? value !== 0 : value
              }),
            )
      },
    }
  }
}
