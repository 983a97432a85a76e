/** One generated case: the naive value against what a device computes. */
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { type Binding, type Device, type Kernel, SptError } from '../../src/node.ts'
import type { Choices } from '../support/choices.ts'
import { Inexact, met } from './arithmetic.ts'
import { dictionary, inputsOf, loaded, tensorOf, textOf } from './bindings.ts'
import { evaluate, type Result } from './evaluate.ts'
import { type Case, Generator } from './generate.ts'
import type { Type } from './numbers.ts'
import { type Attempts, scheduled } from './steps.ts'

export interface Watch extends Attempts {
  readonly text?: (text: string, made: Case) => void
  readonly outcome?: (what: string) => void
  readonly final?: (trace: readonly string[]) => void
}

/** Makes a case from choices and checks it on a device. */
export async function check(
  c: Choices,
  device: Device,
  types: readonly Type[],
  watch: Watch = {},
): Promise<boolean> {
  const say = watch.outcome ?? (() => {})
  const made = new Generator(c, types).generate()
  met.special = made.special
  const expected: Result[] = []
  try {
    // Inouts go on from what the run before left.
    for (const data of made.data) expected.push(evaluate(made.program, data))
  } catch (e) {
    if (!(e instanceof Inexact)) throw e
    say('inexact')
    return false
  }
  // WGSL lets implementations assume that there are neither infinities nor NaN: `x * 0.0` is 0, say.
  if (met.special && device.kind === 'webgpu') return false
  const text = textOf(made.program)
  watch.text?.(text, made)
  const kernel = await accepted('program', say, async () => {
    const k = (await loaded(text)).kernel('k')
    k.show(2)
    return k
  })
  if (!kernel) return false
  // Blocks hold zeros where nothing is stored, and 0 times infinity is NaN: formats are for finite values.
  const steps = made.special
    ? scheduledPlainly(c, kernel, made, watch)
    : scheduled(c, kernel, made.program, c.below(14), watch)
  const final = c.chance(40) ? await asText(steps, made) : steps
  watch.final?.(final.trace)
  try {
    return await runs(final, made, expected, device, say, c)
  } catch (e) {
    if (e instanceof SptError) e.message = `${e.message}\n${final.trace.join('\n')}`
    throw e
  }
}

const scheduledPlainly = (c: Choices, k: Kernel, made: Case, watch: Watch): Kernel =>
  scheduled(c, k, { ...made.program, chains: [] }, c.below(14), watch)

/** The same steps as a schedule in the program's text. */
async function asText(k: Kernel, { program }: Case): Promise<Kernel> {
  const trace = [...k.trace]
  if (trace.length === 0) return k
  const text = textOf(program, `schedule k.again {\n${trace.map((t) => `  ${t}`).join('\n')}\n}\n`)
  const again = (await loaded(text)).kernel('k').schedule('again')
  if (again.trace.join('\n') !== trace.join('\n'))
    throw new Error(`as text ${trace.join('; ')} becomes ${again.trace.join('; ')}`)
  return again
}

/** What `make` gives, or nothing where it is refused. */
async function accepted<T>(
  what: string,
  say: (s: string) => void,
  make: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await make()
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    say(`${what}: ${e.diagnostics[0]!.code}: ${e.diagnostics[0]!.message}`)
    return undefined
  }
}

/** Runs a kernel with each set of values, and compares every output. */
async function runs(
  kernel: Kernel,
  made: Case,
  expected: readonly Result[],
  device: Device,
  say: (s: string) => void,
  c: Choices,
): Promise<boolean> {
  const compiled = await accepted('compile', say, () => kernel.build(device))
  if (!compiled) return false
  const prepared = await accepted('prepare', say, () =>
    compiled.bind(...flatInputs(inputsOf(made, made.data[0]!))),
  )
  if (!prepared) return false
  try {
    if (c.chance(50)) await prepared.executable.poison()
    for (const [k, want] of expected.entries()) {
      if (k > 0 && !(await accepted('write', say, () => rewrite(prepared, made, k).then(() => true)))) break
      let lost = false
      try {
        await prepared.run()
        for (const [name, values] of want.outputs) {
          const got = dictionary(await prepared.get(name))
          if (!want.lostWrites) compare(`run ${k}, ${name}`, made, name, got, values)
        }
      } catch (e) {
        if (!(e instanceof SptError) || e.diagnostics[0]!.code !== 'run/lost-writes') throw e
        lost = true
      }
      if (want.lostWrites === !lost) throw new Error(`writes are ${lost ? '' : 'not '}lost in run ${k}`)
    }
    say('agreed')
    return true
  } finally {
    prepared.free()
    compiled.release()
  }
}

/** New values; refused where a dense tensor that a format stores has some where there were zeros. */
async function rewrite(prepared: Binding, { program, data }: Case, k: number): Promise<void> {
  for (const [name, values] of data[k]!) {
    const buffer = program.buffers.find((b) => b.name === name)!
    await prepared.set(name, tensorOf(program, buffer, values))
  }
}

const same = (a: number, b: number): boolean => a === b || (Number.isNaN(a) && Number.isNaN(b))

function compare(
  what: string,
  { program }: Case,
  name: string,
  got: ReadonlyMap<string, number>,
  want: ReadonlyMap<string, number>,
): void {
  const fill = program.buffers.find((b) => b.name === name)!.fill ?? 0
  const wrong: string[] = []
  for (const [at, x] of want) {
    const y = got.get(at) ?? fill
    if (!same(x, y)) wrong.push(`[${at}] is ${got.get(at)}, expected ${x}`)
  }
  for (const [at, y] of got) if (!want.has(at)) wrong.push(`[${at}] is ${y}, and does not exist`)
  if (wrong.length > 0) throw new Error(`${what}: ${wrong.slice(0, 8).join('; ')}`)
}
