// Ten calls with the generated client. BASE is the server's address, PASSWORD that of the user "ada".
// Prints what came of it as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sort"

	heddle "example.net/heddle"
)

func check(what string, answer *http.Response, err error) {
	if err == nil {
		return
	}
	var body []byte
	if refused, ok := err.(*heddle.GenericOpenAPIError); ok {
		body = refused.Body()
	}
	fmt.Fprintf(os.Stderr, "%s: %v %v %s\n", what, answer, err, body)
	os.Exit(1)
}

func main() {
	settings := heddle.NewConfiguration()
	settings.Servers = heddle.ServerConfigurations{{URL: os.Getenv("BASE")}}
	client := heddle.NewAPIClient(settings)
	open := context.Background()

	health, answer, err := client.HealthAPI.GetHealth(open).Execute()
	check("health", answer, err)
	login := *heddle.NewLogin("ada", os.Getenv("PASSWORD"))
	session, answer, err := client.AuthenticationAPI.LogIn(open).Login(login).Execute()
	check("login", answer, err)
	own := context.WithValue(open, heddle.ContextAccessToken, session.LoginAnswer.AccessToken)

	profile, answer, err := client.AuthenticationAPI.GetOwnProfile(own).Execute()
	check("profile", answer, err)
	created, answer, err := client.SitesAPI.CreateSite(own).SiteCreate(*heddle.NewSiteCreate("From Go")).Execute()
	check("create", answer, err)
	update := heddle.NewSiteUpdate()
	update.SetName("Renamed")
	renamed, answer, err := client.SitesAPI.UpdateSite(own, created.Id).SiteUpdate(*update).Execute()
	check("update", answer, err)
	listed, answer, err := client.SitesAPI.ListSites(own).Search("Renamed").PerPage(5).Execute()
	check("list", answer, err)
	secret := heddle.NewCredentialCreate("router")
	secret.SetUsername("root")
	secret.SetPassword("a-secret")
	credential, answer, err := client.CredentialsAPI.CreateCredential(own).CredentialCreate(*secret).Execute()
	check("credential", answer, err)
	devices, answer, err := client.DevicesAPI.ListDevices(own).PerPage(1).Execute()
	check("devices", answer, err)
	types, answer, err := client.EventsAPI.ListEventTypes(own).Execute()
	check("types", answer, err)
	answer, err = client.SitesAPI.DeleteSite(own, created.Id).Execute()
	check("delete", answer, err)
	audit, answer, err := client.AuditLogAPI.ListAuditEntries(own).TargetId(created.Id).Execute()
	check("audit", answer, err)
	actions := []string{}
	for _, entry := range audit.Items {
		actions = append(actions, entry.Action)
	}
	sort.Strings(actions)
	_, refused, _ := client.SitesAPI.GetSite(own, created.Id).Execute()

	outcome, err := json.Marshal(map[string]any{
		"health": health.Status, "user": profile.Username, "site": renamed.Name, "total": listed.Total,
		"hasPassword": credential.HasPassword, "devices": len(devices.Items), "types": len(types) > 10,
		"actions": actions, "refused": refused.StatusCode,
	})
	check("outcome", nil, err)
	fmt.Println(string(outcome))
}
