// node --import sparsetile/register service.js: multiplies matrices in CSR that clients post as JSON.
import { createServer } from 'node:http'
import spmm from 'sparsetile/kernels/spmm.spt?plan&kernel=spmm&target=cpu'

const fn = await spmm.build()
const server = createServer(async (request, response) => {
  try {
    let text = ''
    for await (const part of request) text += part
    const { indptr, indices, values, B, ...sizes } = JSON.parse(text)
    const { C } = await fn({
      j_indptr: Int32Array.from(indptr),
      j_indices: Int32Array.from(indices),
      A: Float32Array.from(values),
      B: Float32Array.from(B),
      ...sizes,
    })
    response.end(JSON.stringify([...C]))
  } catch (error) {
    response.writeHead(400).end(error.message)
  }
})
server.listen(Number(process.env.PORT ?? 0), () => console.log(`listening on ${server.address().port}`))
