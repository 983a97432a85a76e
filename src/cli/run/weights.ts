/** `--weights` and `--save`: inputs from a model file by name, and results as a model file. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { densePart, openWeights, safetensorsChunks, writeFile } from '../../io/index.ts'
import type { Kernel1, Role } from '../../ir/coordinates/stage1.ts'
import { callerTensors } from '../../run/bind/bind-plan.ts'
import type { DenseTensor, Tensor } from '../../storage/tensor.ts'
import type { Call } from '../arguments/command.ts'
import { checkWritable } from '../arguments/paths.ts'

const namesOf = (kernel: Kernel1, roles: readonly Role[]): readonly string[] =>
  callerTensors(kernel).flatMap((t) => (roles.includes(t.first.role) ? [t.name] : []))

/**
 * The files of `--bind`, and for each other input its tensor in the file of `--weights`: of the same name, otherwise of a
 * name that differs in signs such as `.` only. @throws SptError `bind/no-weights`, `io/…`
 */
export async function withWeights(
  call: Call,
  kernel: Kernel1,
  files: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, string>> {
  const path = call.one('weights')
  if (path === undefined) return files
  const tensors = (await openWeights(path)).tensors.map((t) => t.name)
  const inputs = namesOf(kernel, ['in', 'inout']).filter((name) => !files.has(name))
  const found = inputs.flatMap((input): [string, string][] => {
    const similar = tensors.filter((t) => t.replace(/\W/g, '_') === input)
    const [tensor, other] = tensors.includes(input) ? [input] : similar
    if (other !== undefined)
      failWith(
        'bind/no-weights',
        `${similar.join(', ')} of '${path}' fit ${input} of kernel ${kernel.name}`,
        {
          hint: `write --bind ${input}=${path}#${tensor}`,
        },
      )
    return tensor === undefined ? [] : [[input, tensor]]
  })
  if (found.length === 0)
    failWith('bind/no-weights', `'${path}' has no tensor for an input of kernel ${kernel.name}`, {
      expected: inputs.join(', '),
      lookup: { name: inputs[0] ?? '', candidates: tensors },
      hint: `write --bind ${inputs[0] ?? 'NAME'}=${path}#TENSOR`,
    })
  const bound = new Map(found)
  const unused = tensors.filter((t) => ![...bound.values()].includes(t))
  const missing = inputs.filter((name) => !bound.has(name))
  if (unused.length > 0)
    call.io.err(
      `warning: kernel ${kernel.name} has no input for tensors of '${path}': ${unused.join(', ')}\n`,
    )
  if (missing.length > 0)
    call.io.err(
      `warning: '${path}' has no tensor for inputs of kernel ${kernel.name}: ${missing.join(', ')}\n`,
    )
  return new Map([...files, ...found.map(([name, tensor]) => [name, `${path}#${tensor}`] as const)])
}

/** Checks the path of `--save` before the run. @throws SptError `io/…` */
export async function savePath(call: Call): Promise<string | undefined> {
  const path = call.one('save')
  if (path === undefined) return undefined
  if (!path.toLowerCase().endsWith('.safetensors'))
    failWith('io/unknown-extension', `--save writes a model file, and '${path}' has another ending`, {
      expected: '.safetensors',
    })
  await checkWritable(path)
  return path
}

/** Writes all results and updated inputs under their names; sparse ones with zeros. @throws SptError `io/…` */
export async function saveResults(
  path: string,
  kernel: Kernel1,
  get: (name: string) => Promise<Tensor>,
): Promise<void> {
  const parts = []
  for (const name of namesOf(kernel, ['out', 'inout'])) parts.push(densePart(name, denseOf(await get(name))))
  await writeFile(path, safetensorsChunks(parts))
}

function denseOf(t: Tensor): DenseTensor {
  if (t.kind === 'dense') return t
  if (t.kind !== 'coords' || t.values === null)
    return failWith('io/kind', 'a model file holds dense tensors', { hint: 'write the result with --out' })
  const { shape, coords, dtype, values: given } = t
  const values = given.slice(0, 0).constructor as new (n: number) => typeof given
  const all = new values(shape.reduce((n, x) => n * x, 1)).fill(t.fill ?? 0)
  for (const [e, value] of given.entries())
    all[coords.reduce((at, c, k) => at * shape[k]! + c[e]!, 0)] = value
  return { kind: 'dense', shape, dtype, values: all }
}
