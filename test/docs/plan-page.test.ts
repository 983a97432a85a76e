/** The reference pages of plans and their families name every field, and its example is what the compiler writes. */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import { printPlan, writePlan } from '../../src/plan/write.ts'
import { planOn } from '../../src/run/compile/compiled-program.ts'
import { describedDevice } from '../../src/run/compile/device-limits.ts'

const PAGE = 'docs/reference/plan.md'
const page = readFileSync(PAGE, 'utf8')

test('every field of the schema is on a page', () => {
  const pages = page + readFileSync('docs/reference/plan-families.md', 'utf8')
  const schema = readFileSync('src/plan/schema.ts', 'utf8')
  const fields = [...schema.matchAll(/readonly (\w+)\??: /g)].map((m) => m[1]!)
  expect(fields.length).toBeGreaterThan(60)
  expect(
    [...new Set(fields)].filter((f) => !pages.includes(`\`${f}\``) && !pages.includes(`"${f}": `)),
  ).toEqual([])
})

test('the example is the plan of its kernel', async () => {
  const kernel = (await load('kernels/spmv.spt')).kernel('spmv').schedule('cpu')
  const plan = planOn(describedDevice('cpu', new Set()), kernel.sequential().compilation)
  const { binding: _, ...written } = writePlan(plan)
  const example = printPlan(written)
  const renewed = page.replace(
    /(## Example[\s\S]*```json\n)[\s\S]*?\n```/,
    (_all, head: string) => `${head}${example}\n\`\`\``,
  )
  if (process.env.UPDATE_GOLDEN === '1') writeFileSync(PAGE, renewed)
  else expect(page).toBe(renewed)
})
