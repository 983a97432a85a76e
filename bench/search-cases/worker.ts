/**
 * Measures its share of a case's kernels: applied, compiled and brought into their formats beside others that do the same,
 * compared with the reference and timed while no other does.
 */
import { readFileSync } from 'node:fs'
import { devices } from '../../src/node.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import { messageOf } from '../gpu/ours.ts'
import { seedOf } from '../support.ts'
import type { Answer, SearchCase, Task } from './case.ts'
import { type Candidate, CaseKernels } from './kernels.ts'
import { CaseBench } from './measuring.ts'

const answer = (a: Answer): void => void process.send!(a)
const say = (text: string): void => answer({ kind: 'said', text })

const [kind, folder = 'data', which = '0', all = '1', also = ''] = process.argv.slice(2)
/** Besides those by hand. */
const more =
  also === ''
    ? []
    : readFileSync(also, 'utf8')
        .split('\n')
        .filter((text) => text !== '')
// A context of CUDA is meant to keep the clock of an NVIDIA chip up while nothing runs.
if (kind === 'webgpu') await devices.cuda().catch(() => undefined)
const device = await devices[kind as 'cpu' | 'cuda' | 'webgpu']()
let bench: { readonly of: string; readonly at: CaseBench } | undefined

async function benchOf(of: SearchCase): Promise<CaseBench> {
  const key = JSON.stringify(of)
  if (bench?.of !== key) {
    await bench?.at.close()
    bench = undefined
    bench = { of: key, at: new CaseBench(await CaseKernels.open(of, device, folder)) }
  }
  return bench.at
}

async function work(task: Task): Promise<void> {
  const start = Date.now()
  const at = await benchOf(task.case)
  const opened = Date.now() - start
  if (task.kind === 'finals') {
    for (const t of await at.finals(task.of)) answer({ kind: 'tried', tried: t })
    return
  }
  const [me, workers] = [Number(which), Number(all)]
  const isMine = (text: string): boolean => seedOf(text) % workers === me
  const listed = at.kernels.listed(more).filter((c) => isMine(c.text))
  const first = me === 0 ? await at.kernels.others(say) : []
  const known = new Set(task.known)
  const each = async (list: readonly Candidate[]): Promise<void> => {
    for (const c of list) {
      if (Date.now() > task.until) return
      if (known.has(c.text) && c.of !== 'chosen') continue
      known.add(c.text)
      const tried = await at.measure(c, (lost) => {
        answer({ kind: 'tried', tried: lost })
        process.exit(75)
      })
      answer({ kind: 'tried', tried })
    }
  }
  await each([...first, ...listed])
  const random = new Random(seedOf(`${task.case.suite} ${task.case.data} ${task.case.width} ${me}`))
  const drawing = Date.now()
  const drawn = at.kernels.drawn(Math.ceil(task.points / workers), random, task.until - 2000, isMine)
  const ranked = Date.now() - drawing
  await each(drawn)
  answer({ kind: 'spent', opened, ranked, held: at.heldSince(), all: Date.now() - start })
}

process.on('message', (task: Task) => {
  void work(task)
    .catch((e: unknown) => say(messageOf(e)))
    .then(() => answer({ kind: 'done' }))
})
process.on('disconnect', () => process.exit(0))
