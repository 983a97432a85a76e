/**
 * How long the cost model takes to say what it expects:
 *
 * ```
 * npm run build && node dist/bench/ranking.js [--kernel spmm] [--space gpu_space] [--matrices NAMES] [--data FOLDER]
 *   [--width 128] [--points 1000] [--threads 0,1,3] [--json PATH]
 * ```
 * Points of a space, drawn at random, ranked without measuring (`costPrior`), and the first choice of a kernel's schedule
 * (`auto`): in a new process, on other data afterwards, and on the same again. Milliseconds of CPU, garbage collection
 * included. `--matrices` are names of the families (`power-law:3000`) or of files in `--data`. The digest is of what was
 * predicted: a change of the compiler that is to leave the predictions alone leaves it alone. `node --cpu-prof` says where
 * the time goes: with `--stage ranking` all in one process. `--threads` prints seconds of the clock instead, of the same points
 * with so many threads beside the first, which have to begin and to compile themselves: each in a new process.
 */

import { createHash } from 'node:crypto'
import { flatInputs } from '../src/api/inputs/flat-inputs.ts'
import { type Kernel, load, type Tensor } from '../src/node.ts'
import { Random } from '../src/run/bind/sources/random-tensors.ts'
import { costPrior, predictor } from '../src/search/ranking/cost-model.ts'
import { samplePoint } from '../src/search/spaces/points.ts'
import type { Point } from '../src/search/types.ts'
import { inputs, structured } from './gpu/declared.ts'
import { type Csr, sources } from './gpu/matrix.ts'
import { child, count, cpu, isMain, option, packageFile, table, writeJson } from './support.ts'

interface Ranking {
  readonly statistics: number
  readonly walk: number
  readonly steps: number
  readonly predict: number
  /** Of all points together. */
  readonly total: number
  readonly refused: number
  readonly digest: string
}

interface Choice {
  readonly first: number
  readonly other: number
  readonly again: number
}

const name = option('kernel') ?? 'spmm'
const spaceName = option('space') ?? 'gpu_space'
const width = count('width', 128)
const wanted = count('points', 1000)
const names = (option('matrices') ?? 'power-law:3000,uniform:20000').split(',')

const kernelOf = async (): Promise<Kernel> => (await load(packageFile(`kernels/${name}.spt`))).kernel(name)

async function matrixOf(matrix: string): Promise<Csr> {
  const [source] = sources(option('data') ?? '.', [matrix], false).found
  if (!source) throw new Error(`no matrix ${matrix}`)
  return source.read()
}

/** What is bound: the matrix under the first name, and sizes of all else. */
function boundTo(kernel: Kernel, A: Csr) {
  const { source } = kernel
  const first = inputs(source)[0]!.name
  const tensors: Record<string, Tensor> = {
    [first]: structured(source, [A.rows, A.columns], A, null, 'f32'),
  }
  const all: Readonly<Record<string, number>> = { m: A.rows, n: A.columns, d: width }
  const params = Object.fromEntries(
    source.params.filter((p) => p.name in all).map((p) => [p.name, all[p.name]!]),
  )
  return { tensors, params }
}

async function ranking(matrix: string): Promise<Ranking> {
  const kernel = await kernelOf()
  const A = await matrixOf(matrix)
  const given = boundTo(kernel, A)
  const marks = [cpu()]
  const predict = predictor(kernel, { device: 'cuda', inputs: given })
  marks.push(cpu())
  const space = await kernel.space(spaceName).bind('cuda', ...flatInputs({ ...given, processors: 132 }))
  const random = new Random(7)
  const points = Array.from(
    { length: wanted },
    () => samplePoint(space, () => random.next())!,
  ) as readonly Point[]
  let [made, predicted] = [0, 0]
  const timed: typeof predict = (scheduled) => {
    const start = performance.now()
    const found = predict(scheduled)
    predicted += performance.now() - start
    return found
  }
  const prior = costPrior(
    {
      name: space.name,
      next: (p) => space.next(p),
      kernel: (p) => {
        const start = performance.now()
        const k = space.kernel(p)
        made += performance.now() - start
        return k
      },
    },
    timed,
  )
  const before = cpu()
  const costs = prior(points)
  const total = cpu() - before
  const startWalk = performance.now()
  for (const p of points) space.call(p)
  const walk = performance.now() - startWalk
  return {
    statistics: marks[1]! - marks[0]!,
    walk,
    steps: made - walk,
    predict: predicted,
    total,
    refused: costs.filter((c) => c === Number.POSITIVE_INFINITY).length,
    digest: digestOf(costs),
  }
}

/** Seconds of the clock, for all points together. */
async function threaded(
  matrix: string,
  threads: number,
): Promise<{ seconds: number; cpu: number; digest: string }> {
  const kernel = await kernelOf()
  const given = boundTo(kernel, await matrixOf(matrix))
  const predict = predictor(kernel, { device: 'cuda', inputs: given })
  const space = await kernel.space(spaceName).bind('cuda', ...flatInputs({ ...given, processors: 132 }))
  const random = new Random(7)
  const points = Array.from(
    { length: wanted },
    () => samplePoint(space, () => random.next())!,
  ) as readonly Point[]
  const prior = costPrior(space, predict, { threads })
  const [start, before] = [performance.now(), cpu()]
  const costs = prior(points)
  return {
    seconds: (performance.now() - start) / 1000,
    cpu: (cpu() - before) / 1000,
    digest: digestOf(costs),
  }
}

const digestOf = (costs: readonly number[]): string =>
  createHash('sha256').update(new Float64Array(costs)).digest('hex').slice(0, 16)

/** On `matrix` first, then on `other`, and on that again. */
async function choice(matrix: string, other: string): Promise<Choice> {
  const kernel = await kernelOf()
  const took = async (given: ReturnType<typeof boundTo>): Promise<number> => {
    const start = cpu()
    await kernel.schedule('auto').choose('cuda', ...flatInputs({ ...given, capability: 9, processors: 132 }))
    return cpu() - start
  }
  const [a, b] = [boundTo(kernel, await matrixOf(matrix)), boundTo(kernel, await matrixOf(other))]
  return { first: await took(a), other: await took(b), again: await took(b) }
}

if (isMain(import.meta.url)) {
  const stage = option('stage')
  if (stage === 'ranking') process.stdout.write(JSON.stringify(await ranking(names[0]!)))
  else if (stage === 'threads')
    process.stdout.write(JSON.stringify(await threaded(names[0]!, Number(option('with')))))
  else if (option('threads') !== undefined) {
    const passed = process.argv.slice(2)
    const rows = names.flatMap((matrix) =>
      option('threads')!
        .split(',')
        .map((n) => {
          const own = ['--stage', 'threads', '--with', n, '--matrices', matrix]
          return {
            matrix,
            threads: n,
            ...child<Awaited<ReturnType<typeof threaded>>>([...own, ...passed], import.meta.url),
          }
        }),
    )
    console.log(`${wanted} points of ${name}.${spaceName}, width ${width}: threads beside the first\n`)
    console.log(
      table(
        ['matrix', 'threads', 'seconds', 'of CPU', 'digest'],
        rows.map((r) => [r.matrix, r.threads, r.seconds, r.cpu, r.digest]),
      ),
    )
    writeJson({ rows })
  } else if (stage === 'choice')
    process.stdout.write(JSON.stringify(await choice(names[0]!, names[1] ?? names[0]!)))
  else {
    const passed = process.argv.slice(2)
    const of = <T>(stage: string, matrices: readonly string[]): T =>
      child(['--stage', stage, '--matrices', matrices.join(), ...passed], import.meta.url)
    const rankings = names.map((matrix) => of<Ranking>('ranking', [matrix]))
    console.log(
      `${wanted} points of ${name}.${spaceName}, width ${width}: milliseconds of CPU; a point: µs\n`,
    )
    console.log(
      table(
        ['matrix', 'statistics', 'walk', 'steps', 'predict', 'total', 'a point', 'refused', 'digest'],
        rankings.map((r, k) => [
          names[k]!,
          r.statistics,
          r.walk,
          r.steps,
          r.predict,
          r.total,
          (1000 * r.total) / wanted,
          String(r.refused),
          r.digest,
        ]),
      ),
    )
    const choices = names.map((matrix, k) => of<Choice>('choice', [names[(k + 1) % names.length]!, matrix]))
    console.log(`\n${name}.auto, milliseconds of CPU\n`)
    console.log(
      table(
        ['matrix', 'the first', 'on other data', 'again'],
        choices.map((c, k) => [names[k]!, c.first, c.other, c.again]),
      ),
    )
    writeJson({ rankings, choices })
  }
}
