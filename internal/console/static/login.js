// Logs in with the code of a link of rtm console. It is in the fragment, which no server gets.

const code = new URLSearchParams(location.hash.slice(1)).get("code");
if (code) {
  history.replaceState(null, "", location.pathname + location.search);
  const form = document.getElementById("login");
  form.elements.code.value = code;
  form.submit(); // without the secret, which is required otherwise
}
