// The pages of the authorization server: login and consent.

import { PEOPLE } from "./provider.mjs";

export function pages(provider) {
  return async (request, response) => {
    try {
      const details = await provider.interactionDetails(request, response);
      if (request.method === "GET") return await show(provider, details, response);
      const form = await read(request);
      const result = await decide(provider, details, form);
      if (!result) return await show(provider, details, response, "That is not right.");
      await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: details.prompt.name === "consent" });
    } catch (error) {
      answer(response, 500, "Something went wrong", escape(`${error.message}: ${error.error_description ?? ""}`));
    }
  };
}

async function show(provider, { prompt, params }, response, wrong = "") {
  const client = await provider.Client.find(params.client_id);
  const name = escape(client.clientName ?? client.clientId);
  if (prompt.name === "login") {
    return answer(response, 200, "Log in", `<p>${wrong}<p>${name} wants you to log in.
      <form method="post"><input name="name" autocomplete="username"><input name="password" type="password">
      <button id="login">Log in</button></form>`);
  }
  const wanted = Object.entries(prompt.details.missingResourceScopes ?? {});
  const list = wanted.flatMap(([at, scopes]) => scopes.map((scope) => `<li>${escape(scope)} at ${escape(at)}</li>`));
  answer(response, 200, "Do you agree?", `<p>${name} wants:<ul id="wanted">${list.join("")}</ul>
    <form method="post"><button id="agree" name="answer" value="yes">Agree</button>
    <button id="refuse" name="answer" value="no">Refuse</button></form>`);
}

/// Returns the result of a submitted form; nothing if the input is wrong.
async function decide(provider, { prompt, params, session, grantId }, form) {
  if (prompt.name === "login") {
    const name = form.get("name");
    return PEOPLE[name] === form.get("password") ? { login: { accountId: name } } : undefined;
  }
  if (form.get("answer") !== "yes") {
    return { error: "access_denied", error_description: "the user has refused" };
  }
  const known = grantId && (await provider.Grant.find(grantId));
  const grant = known || new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope, missingOIDCClaims, missingResourceScopes } = prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(" "));
  if (missingOIDCClaims) grant.addOIDCClaims(missingOIDCClaims);
  for (const [at, scopes] of Object.entries(missingResourceScopes ?? {})) grant.addResourceScope(at, scopes.join(" "));
  return { consent: { grantId: await grant.save() } };
}

async function read(request) {
  let body = "";
  for await (const part of request.setEncoding("utf8")) body += part;
  return new URLSearchParams(body);
}

function answer(response, status, title, body) {
  response.writeHead(status, { "content-type": "text/html; charset=utf-8", "cache-control": "no-store" });
  response.end(`<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1>${body}</html>`);
}

const escape = (text) => text.replace(/[&<>"]/g, (it) => `&#${it.charCodeAt(0)};`);
