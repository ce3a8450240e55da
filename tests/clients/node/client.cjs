// openai-node, unmodified, with its own retries and time-outs: `node client.cjs SCENARIO stream|json [PROMPT]`, with
// BASE_URL set. Prints one JSON line: what the caller saw.
"use strict";
const { OpenAI } = require("openai");

const client = new OpenAI({ apiKey: "sk-real-client", baseURL: process.env.BASE_URL });
const model = "gpt-5";
const tool = {
  type: "function",
  name: "lookup",
  description: "Looks a word up.",
  parameters: { type: "object", properties: { word: { type: "string" } }, required: ["word"] },
  strict: false,
};

/** One turn, streamed or not; the final response, and the types of the events that went before it. */
async function turn(stream, fields) {
  if (!stream) return { response: await client.responses.create({ model, ...fields }), kinds: [] };
  const events = client.responses.stream({ model, ...fields });
  const kinds = [];
  for await (const event of events) kinds.push(event.type);
  return { response: await events.finalResponse(), kinds };
}

const text = (response) =>
  response.output.flatMap((item) => (item.content ?? []).map((part) => part.text ?? "")).join("");

const seen = ({ response, kinds }) => ({
  status: response.status,
  text: text(response),
  output_tokens: response.usage.output_tokens,
  kinds,
});

const scenarios = {
  async turn(stream) {
    return seen(await turn(stream, { input: "sim:conv=node sim:text(n=20)" }));
  },

  async anchors(stream) {
    let last = { response: { id: undefined } };
    for (let n = 0; n < 3; n++) {
      last = await turn(stream, { input: `sim:conv=node turn ${n}`, previous_response_id: last.response.id });
    }
    return seen(last);
  },

  async history(stream) {
    const input = [];
    let last;
    for (let n = 0; n < 3; n++) {
      input.push({ role: "user", content: `sim:conv=node turn ${n}` });
      last = await turn(stream, { input, store: false, prompt_cache_key: "node" });
      input.push(...last.response.output);
    }
    return seen(last);
  },

  async tools(stream) {
    const input = [{ role: "user", content: "sim:conv=node sim:tools(rounds=5)" }];
    let ran = 0;
    let last;
    for (let round = 0; round < 6; round++) {
      last = await turn(stream, { input, tools: [tool], store: false, prompt_cache_key: "node" });
      input.push(...last.response.output);
      for (const call of last.response.output.filter((item) => item.type === "function_call")) {
        JSON.parse(call.arguments);
        ran += 1;
        input.push({ type: "function_call_output", call_id: call.call_id, output: `found ${ran}` });
      }
    }
    return { ...seen(last), ran };
  },

  async say(stream, input) {
    return seen(await turn(stream, { input, prompt_cache_key: "node" }));
  },

  /** The same without the stream helper: events as they come. */
  async listen(_, input) {
    const kinds = [];
    let last;
    for await (const event of await client.responses.create({ model, input, stream: true })) {
      kinds.push(event.type);
      last = event;
    }
    return { status: last.response.status, code: last.response.error?.code, kinds };
  },

  /** The exception that a caller sees who wants no retries. */
  async fail(stream, input) {
    const error = await client.responses.create({ model, input, stream }, { maxRetries: 0 }).catch((error) => error);
    const { status, code, param, type } = error;
    return { status, code, param, type, name: error.constructor.name, retry_after: error.headers.get("retry-after") };
  },

  /** A caller who takes the first event, or waits a second for an object, and leaves. */
  async leave(stream, input) {
    const controller = new AbortController();
    const answer = client.responses.create({ model, input, stream }, { signal: controller.signal });
    if (stream) for await (const event of await answer) return { status: event.type };
    setTimeout(() => controller.abort(), 1000);
    return { status: (await answer.catch((error) => error)).constructor.name };
  },
};

const [scenario, mode, prompt] = process.argv.slice(2);
scenarios[scenario](mode === "stream", prompt).then(
  (result) => console.log(JSON.stringify(result)),
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);
