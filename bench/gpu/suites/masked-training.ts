/**
 * A step of training a linear layer under a mask that is found in each run: f16 with f32 sums and weights. The mask has blocks at
 * random. Against PyTorch, which multiplies by the mask, and against our own dense schedules.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dense, type ValueArray } from '../../../src/node.ts'
import { entryOf, type PythonResult, pythonPeers, type TrainingCase } from '../../peers/python.ts'
import { widen } from '../blocks.ts'
import { breakEvenTexts } from '../break-even.ts'
import { type Candidate, fieldOf, parseCandidate } from '../candidates.ts'
import { type Contestant, compete } from '../case.ts'
import { floor } from '../ceilings.ts'
import { ours, withTypes } from '../contestants.ts'
import { overview } from '../entry-table.ts'
import { heldAsked } from '../masked.ts'
import type { OurDevice } from '../ours.ts'
import { percent } from '../pruned-layers.ts'
import type { Session } from '../session.ts'
import type { Tile } from '../tiles.ts'
import { ExpectedStep, type TrainingShape, TrainingStep } from '../training-draw.ts'

const SUITE = 'masked-training'
const SHAPE: TrainingShape = { tokens: 8192, inputs: 4096, outputs: 4096 }
const BLOCK: Tile = [64, 64]
/** Shares of blocks that the mask holds. */
const HELD = [0.5, 0.25, 0.1, 0.05]
/** Tokens and outputs whose results are computed in float64: each takes a hundred million products. */
const SAMPLED = 4
const PYTORCH = 'PyTorch'
const DENSE = 'dense '

export async function maskedTraining(s: Session): Promise<void> {
  const shares = s.options.quick ? [0.1] : heldAsked(s.options, HELD)
  await maskedTrainingOf(s, shares, SHAPE)
  const mine = s.cases.filter((c) => c.suite === SUITE)
  s.say(overview(mine))
  for (const text of breakEvenTexts(mine, [PYTORCH, DENSE])) s.say(text)
}

const DATA = `blocks of ${BLOCK.join(' × ')}`

export async function maskedTrainingOf(
  s: Session,
  shares: readonly number[],
  shape: TrainingShape,
): Promise<void> {
  const step = new TrainingStep(shape, Date.now() & 0xffff)
  const seed = Date.now() & 0xffff
  const python = await peers(s, step, shares, seed)
  for (const held of shares) {
    if (s.has(SUITE, DATA, percent(1 - held))) continue
    if (s.late()) return
    step.hold(BLOCK, held, seed)
    await one(s, held, step, python)
  }
}

const idOf = (held: number): string => percent(1 - held)

/** All cases in one process: it takes seconds to start. */
const peers = (
  s: Session,
  step: TrainingStep,
  shares: readonly number[],
  seed: number,
): Promise<readonly PythonResult[]> =>
  pythonPeers('masked_training.py', s, (folder) =>
    shares.map((held, c): TrainingCase => {
      const file = join(folder, String(c))
      step.hold(BLOCK, held, seed)
      writeFileSync(`${file}-mask`, step.M)
      return { id: idOf(held), file, rate: step.rate, ...step.shape }
    }),
  )

async function one(
  s: Session,
  held: number,
  step: TrainingStep,
  python: readonly PythonResult[],
): Promise<void> {
  const on = await s.cuda()
  const expected = new ExpectedStep(step, SAMPLED, Date.now() & 0xffff)
  // Products under a mask begin with the same word.
  const asked = s.options.schedules.filter((text) => parseCandidate(text).kernel.includes('training'))
  const field = fieldOf(SUITE, asked)
  const whole = fieldOf(`${SUITE}-dense`, []).candidates
  const entries = await compete(
    [
      ...whole.map(
        (c): Contestant => ({ ...ourStep(on, c, step, expected), name: `${DENSE}${c.text}`, side: 'peer' }),
      ),
      ...field.candidates.map((c) => ourStep(on, c, step, expected)),
    ],
    field.standard,
    s,
  )
  const { tokens: m, inputs: k, outputs: n } = step.shape
  const flops = 6 * m * step.count
  // X, T, Y, E and D, the mask, and of what it holds the weights before and after.
  const bytes = 4 * m * k + 6 * m * n + 2 * n * k + 8 * step.count
  await s.done({
    suite: SUITE,
    data: DATA,
    at: percent(1 - held),
    entries: [...entries, ...python.filter((r) => r.id === idOf(held)).map(entryOf)],
    checked: expected.checked,
    floor: s.ceilings ? floor(s.ceilings, { flops, bytes }, 'f16') : null,
    flops,
    standard: field.standard,
  })
}

/** A choice is what its runs lead it to. What is checked is one step from the weights as they were drawn. */
const ourStep = (
  on: OurDevice,
  candidate: Candidate,
  { shape, rate, X, T, W, M }: TrainingStep,
  expected: ExpectedStep,
): Contestant =>
  ours(
    candidate.text,
    async () => {
      const { tokens, inputs, outputs } = shape
      const ready = await on.ready(candidate)
      const rest = {
        T: dense([tokens, outputs], T, 'f16'),
        M: dense([outputs, inputs], M, 'f16'),
        W: dense([outputs, inputs], W),
      }
      return on.led(ready, dense([tokens, inputs], X, 'f16'), rest, { rate })
    },
    async (run) => {
      await run.prepared.set('W', W)
      await run.run()
      const read = async (name: string): Promise<Float32Array> => numbers(await run.values(name))
      return expected.check({ Y: await read('Y'), D: await read('D'), W: await read('W') })
    },
    withTypes,
  )

const numbers = (values: ValueArray): Float32Array =>
  values instanceof Uint16Array ? widen(values) : Float32Array.from(values)
